"""Every load manager by name, and what each of them can and cannot do."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from spillway.errors import unknown_name
from spillway.load.aloma import Aloma
from spillway.load.aurora import Aurora
from spillway.load.baseline import Baseline
from spillway.load.ctrl import Ctrl
from spillway.load.dissp import Dissp
from spillway.load.fixed import Fixed
from spillway.load.none import Nothing
from spillway.load.pid import Pid
from spillway.load.pie import Pie
from spillway.load.predictive import Predictive
from spillway.load.seamless import Seamless
from spillway.options import parsed
from spillway.ports import LoadManager

LAWS: Mapping[str, type[LoadManager]] = MappingProxyType(
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """Table 7 of the thesis, extended. The contract suite checks every entry in both directions."""

    honours_target: bool  # under lasting overload the delay settles at the target
    follows_changed_target: bool  # ... also when the target changes at run time
    tunes_headroom: bool  # returns to the target when a background job takes capacity away
    works_on_shared_operators: bool  # holds the delay where one tuple in gives several out
    independent_of_fairness: bool  # holds the delay of the queries an unfair scheduler puts last
    recovers: bool  # soon after an overload nothing is shed and the delay is small
    no_creep: bool  # under mild overload the delay does not grow without bound


def _can(pattern: str) -> Capabilities:
    """One letter a column, in the order of the fields: x has it, - lacks it."""
    fields = Capabilities.__dataclass_fields__
    return Capabilities(**{name: mark == "x" for name, mark in zip(fields, pattern, strict=True)})


CAPABILITIES: Mapping[str, Capabilities] = MappingProxyType(
    {
        "none": _can("-------"),
        "fixed": _can("---xx-x"),
        "aurora": _can("---xxx-"),
        "baseline": _can("xx---xx"),
        "ctrl": _can("xx---xx"),
        "dissp": _can("xxxx-xx"),
        "seamless": _can("xxxx-xx"),
        "aloma": _can("xxxxxxx"),
        "pid": _can("--xxxxx"),
        "pie": _can("xxxx-xx"),
        "predictive": _can("xxxxxxx"),
    }
)


def make(name: str, **settings: object) -> LoadManager:
    """A load manager by its lower-case key; unknown names and settings get one clear line."""
    return find(name)(**checked(name, settings))


def find(name: str) -> type[LoadManager]:
    if name not in LAWS:
        raise unknown_name("load manager", name, LAWS)
    return LAWS[name]


def checked(name: str, settings: Mapping[str, object]) -> dict[str, object]:
    """The parameters of a law as its declaration has them, with its defaults."""
    what = f"parameter '{{}}' of load manager '{name}'"
    values = parsed(find(name).parameters, settings, f"load manager '{name}'", what)
    return {setting: value for setting, value in values.items() if value is not None}
