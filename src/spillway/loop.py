"""One tick of the control path."""

from collections.abc import Mapping

from spillway.model import Measurement
from spillway.ports import Journal, LoadManager, Plant


def tick(
    plant: Plant, managers: Mapping[str, LoadManager], journal: Journal | None = None
) -> dict[str, Measurement]:
    """Monitor -> load manager -> gate, once for every class; says what was measured."""
    measured = {}
    for measurement in plant.observe():
        measured[measurement.class_name] = measurement
        decision = managers[measurement.class_name].decide(measurement)
        plant.actuate(measurement.class_name, decision)
        if journal is not None:
            journal.record(measurement, decision)
    return measured
