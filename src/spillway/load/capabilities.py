"""What a load manager can and cannot do."""

from dataclasses import dataclass


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


def can(pattern: str) -> Capabilities:
    """One letter a column, in the order of the fields: x has it, - lacks it."""
    fields = Capabilities.__dataclass_fields__
    return Capabilities(**{name: mark == "x" for name, mark in zip(fields, pattern, strict=True)})
