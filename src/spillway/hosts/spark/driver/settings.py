"""What can be set while a flow runs: checked as the flow file is, and kept in the flow's folder.

An override stands beside the file's value and wins over it, also after a restart, until it is
cleared. Several changes at once happen all or not at all.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from spillway.classes.control import ClassTerms
from spillway.classes.policies import POLICIES
from spillway.errors import SpillwayError, shown, unknown_name
from spillway.flow.flow import Flow, ServiceClass
from spillway.load import laws
from spillway.model import LawChoice, Target

OF_A_CLASS = ("delay", "priority", "lend", "manager", "min_keep", "shedding")
POLICY = "control.policy"
PAUSED = "paused"

Changes = Mapping[str, object]  # by key, such as "gold.delay"; None clears it


@dataclass(frozen=True, kw_only=True)
class Overridden:
    """One setting: what it was set to, by whom and when."""

    to: object
    by: str
    time_s: float


@dataclass(frozen=True, kw_only=True)
class Changed:
    """One setting that has another value now."""

    key: str
    was: str
    to: str
    cleared: bool


class Settings:
    """In force are the flow's own values, with the overrides on top of them."""

    def __init__(self, flow: Flow, path: Path) -> None:
        self._flow, self._path = flow, path
        self.overrides: dict[str, Overridden] = {}
        self.classes: dict[str, ServiceClass] = dict(flow.classes)
        self.policy: str = flow.control.policy
        self.ignored: dict[str, str] = {}  # overrides of an earlier run that no longer fit: why
        self._load()

    def keys(self) -> list[str]:
        """All that can be set."""
        return [*(f"{name}.{setting}" for name in self.classes for setting in OF_A_CLASS), POLICY]

    def value(self, key: str) -> str:
        return _read(key, self.classes, self.policy)

    def in_file(self, key: str) -> str:
        return _read(key, self._flow.classes, self._flow.control.policy)

    def terms(self, name: str) -> ClassTerms:
        """What the class scheduler and the gates are told of a class."""
        now, first = self.classes[name], self._flow.classes[name]
        law, settings = now.law
        return ClassTerms(
            priority=now.priority,
            target=Target.parse(now.delay),
            lend=now.lend,
            adapts=laws.find(law).adapts,
            law=None if now.law == first.law else LawChoice(name=law, settings=settings),
            min_keep=1.0 if now.shedding == PAUSED else now.min_keep,
        )

    def change(self, changes: Changes, by: str, time_s: float) -> list[Changed]:
        """Raises SpillwayError, with nothing changed, where one of them cannot be."""
        wanted = dict(self.overrides)
        for key, to in changes.items():
            self._require_known(key)
            if to is None:
                wanted.pop(key, None)
            else:
                wanted[key] = Overridden(to=to, by=by, time_s=time_s)
        classes, policy = self._with(wanted)
        found = []
        for key, to in changes.items():
            new = _read(key, classes, policy)
            found.append(Changed(key=key, was=self.value(key), to=new, cleared=to is None))
        self._save(wanted)
        self.overrides, self.classes, self.policy = wanted, classes, policy
        return found

    def _require_known(self, key: str) -> None:
        if key == POLICY:
            return
        name, _, setting = key.partition(".")
        if name not in self._flow.classes:
            raise unknown_name("class", name, self._flow.classes)
        if setting not in OF_A_CLASS:
            raise unknown_name("setting", setting, OF_A_CLASS)

    def _with(self, overrides: Mapping[str, Overridden]) -> tuple[dict[str, ServiceClass], str]:
        given = {name: c.model_dump() for name, c in self._flow.classes.items()}
        classes, policy = dict(self._flow.classes), str(self._flow.control.policy)
        for key, override in overrides.items():
            if key == POLICY:
                policy = _policy(override.to)
                continue
            name, _, setting = key.partition(".")
            given[name][setting] = _parsed(setting, override.to)
            try:
                classes[name] = ServiceClass.model_validate(given[name])
            except ValidationError as error:
                problem = error.errors()[0]["msg"].removeprefix("Value error, ")
                raise SpillwayError(
                    f"{key} cannot become '{shown(str(override.to))}': {problem}"
                ) from error
        return classes, policy

    def _load(self) -> None:
        try:
            stored = json.loads(self._path.read_text())
            kept = {key: Overridden(**value) for key, value in stored.items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError) as error:
            self.ignored[str(self._path)] = f"it cannot be read: {error}"
            return
        for key, override in kept.items():  # the flow file may have changed since
            try:
                self._require_known(key)
                wanted = {**self.overrides, key: override}
                self.classes, self.policy = self._with(wanted)
                self.overrides = wanted
            except SpillwayError as error:
                self.ignored[key] = str(error)

    def _save(self, overrides: Mapping[str, Overridden]) -> None:
        """Whole or not at all: the file is there as it was, or as it is now."""
        text = json.dumps({key: vars(override) for key, override in overrides.items()}, indent=1)
        new = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with new.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self._path)
        except OSError as error:
            raise SpillwayError(
                f"{self._path} cannot be written ({error.strerror}): nothing was changed"
            ) from error


def _read(key: str, classes: Mapping[str, ServiceClass], policy: str) -> str:
    if key == POLICY:
        return policy
    name, _, setting = key.partition(".")
    value: Any = getattr(classes[name], setting)
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _policy(to: object) -> str:
    if not isinstance(to, str) or to not in POLICIES:
        raise unknown_name("redistribution policy", str(to), POLICIES)
    return str(to)


def _parsed(setting: str, to: object) -> object:
    """`{law: ctrl, headroom: 0.9}` may come as text."""
    if setting != "manager" or not isinstance(to, str) or not to.startswith("{"):
        return to
    try:
        return yaml.safe_load(to)
    except yaml.YAMLError as error:
        said = str(error).splitlines()[0]
        raise SpillwayError(
            f"manager cannot become '{to}': {said}; write a law's name, or {{law: ctrl,"
            " headroom: 0.9}"
        ) from error
