"""A cluster that only applications attach to needs no stream and no query; any other flow does."""

from pathlib import Path

import pytest

from spillway.check.flow_file import load_flow
from spillway.errors import SpillwayError
from spillway.hosts.cluster.opening import place_of

CLASSES = "classes:\n  gold: {delay: 2s, priority: 6}\n"


def test_classes_alone_are_enough_for_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "shared.yaml"
    file.write_text(f"{CLASSES}cluster: {{launcher: none}}\n")
    place = place_of(file, load_flow(file))
    assert place.flow.queries == {}


def test_without_a_cluster_something_has_to_run(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(CLASSES)
    with pytest.raises(SpillwayError, match=r"flow.yaml:1: the file: streams is missing"):
        load_flow(file)
