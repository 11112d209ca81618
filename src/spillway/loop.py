"""One tick of the control path: measure, decide, act, record."""

from collections.abc import Mapping

from spillway.ports import Decider, Journal, Plant


def tick(plant: Plant, managers: Mapping[str, Decider], journal: Journal | None = None) -> None:
    """Every decision, of every law on every host, is made here; managers are found by class."""
    for measurement in plant.observe():
        decision = managers[measurement.class_name].decide(measurement)
        plant.act(measurement, decision)
        if journal is not None:
            journal.record(measurement, decision)
