"""One tick of the control path."""

from collections.abc import Mapping

from spillway.ports import Journal, LoadManager, Plant


def tick(plant: Plant, managers: Mapping[str, LoadManager], journal: Journal | None = None) -> None:
    """Monitor -> load manager -> gate, once for every class."""
    for measurement in plant.observe():
        decision = managers[measurement.class_name].decide(measurement)
        plant.actuate(measurement.class_name, decision)
        if journal is not None:
            journal.record(measurement, decision)
