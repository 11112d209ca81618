"""The three classes of the thesis's QN-A: priorities 6, 3, 1 and their delay targets."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceClass:
    name: str
    priority: int
    target_delay_s: float
    share: float  # of all queries


CLASSES = (
    ServiceClass(name="gold", priority=6, target_delay_s=0.3, share=0.2),
    ServiceClass(name="silver", priority=3, target_delay_s=0.4, share=0.3),
    ServiceClass(name="bronze", priority=1, target_delay_s=0.5, share=0.5),
)
CLASS_NAMES = tuple(c.name for c in CLASSES)
