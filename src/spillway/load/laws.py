"""Every load manager by name, and what each of them can and cannot do."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Protocol

from spillway.errors import unknown_name
from spillway.load.aloma import Aloma
from spillway.load.aurora import Aurora
from spillway.load.baseline import Baseline
from spillway.load.capabilities import Capabilities
from spillway.load.ctrl import Ctrl
from spillway.load.dissp import Dissp
from spillway.load.fixed import Fixed
from spillway.load.none import Nothing
from spillway.load.pid import Pid
from spillway.load.pie import Pie
from spillway.load.predictive import Predictive
from spillway.load.seamless import Seamless
from spillway.model import LawChoice
from spillway.options import Option, parsed
from spillway.ports import LoadManager


class Law(LoadManager, Protocol):
    """A load manager as it is declared: found by name, made from its parameters."""

    parameters: ClassVar[tuple[Option, ...]]
    capabilities: ClassVar[Capabilities]


LAWS: Mapping[str, type[Law]] = MappingProxyType(
    {
        "none": Nothing,
        "fixed": Fixed,
        "aurora": Aurora,
        "baseline": Baseline,
        "ctrl": Ctrl,
        "dissp": Dissp,
        "seamless": Seamless,
        "aloma": Aloma,
        "pid": Pid,
        "pie": Pie,
        "predictive": Predictive,
    }
)


CAPABILITIES: Mapping[str, Capabilities] = MappingProxyType(
    {name: law.capabilities for name, law in LAWS.items()}
)


def make(name: str, **settings: object) -> LoadManager:
    """A load manager by its lower-case key; unknown names and settings get one clear line."""
    return find(name)(**checked(name, settings))


def chosen(choice: LawChoice | None) -> LoadManager | None:
    return None if choice is None else make(choice.name, **choice.settings)


def find(name: str) -> type[Law]:
    if name not in LAWS:
        raise unknown_name("load manager", name, LAWS)
    return LAWS[name]


def checked(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    """The parameters of a law as its declaration has them, with its defaults."""
    what = f"parameter '{{}}' of load manager '{name}'"
    values = parsed(find(name).parameters, settings, "it", what)
    return {setting: value for setting, value in values.items() if value is not None}
