"""What was set beside the flow file: all or nothing, kept, and cleared."""

import json
from pathlib import Path
from typing import Any

import pytest

from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.settings import Settings
from spillway.model import LawChoice, Order, Target


def flow(**classes: dict[str, Any]) -> Flow:
    return Flow.model_validate(
        {
            "streams": {"clicks": {"source": "synthetic"}},
            "classes": classes or {"gold": {"delay": "1s"}, "bronze": {"delay": "4s"}},
            "queries": {"a": {"class": "gold", "sql": "SELECT * FROM clicks"}},
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "overrides.json"


def test_a_change_survives_a_restart_and_stands_beside_the_file(path: Path) -> None:
    Settings(flow(), path).change({"gold.delay": "p99 2s", "gold.lend": 0.5}, "ada", 10.0)
    again = Settings(flow(), path)
    assert again.classes["gold"].delay == "p99 2s"
    assert (again.value("gold.lend"), again.in_file("gold.lend")) == ("0.5", "1.0")
    assert again.overrides["gold.delay"].by == "ada"


def test_cleared_it_is_what_the_file_says_now(path: Path) -> None:
    Settings(flow(), path).change({"gold.delay": "9s"}, "ada", 1.0)
    settings = Settings(flow(gold={"delay": "3s"}), path)
    [change] = settings.change({"gold.delay": None}, "ada", 2.0)
    assert (change.was, change.to, change.cleared) == ("9s", "3s", True)
    assert Settings(flow(gold={"delay": "3s"}), path).overrides == {}


def test_of_several_changes_all_happen_or_none(path: Path) -> None:
    settings = Settings(flow(), path)
    with pytest.raises(SpillwayError, match=r"bronze\.priority cannot become '0'"):
        settings.change({"gold.delay": "2s", "bronze.priority": 0}, "ada", 1.0)
    assert settings.overrides == {}
    assert settings.classes["gold"].delay == "1s"
    assert not path.exists()


def test_an_override_of_a_class_that_is_gone_is_left_out_and_said(path: Path) -> None:
    Settings(flow(), path).change({"bronze.delay": "2s", "gold.delay": "2s"}, "ada", 1.0)
    settings = Settings(flow(gold={"delay": "1s"}), path)
    assert set(settings.ignored) == {"bronze.delay"}
    assert settings.classes["gold"].delay == "2s"


def test_a_damaged_file_is_said_and_stops_nothing(path: Path) -> None:
    path.write_text("{")
    assert str(path) in Settings(flow(), path).ignored


def test_a_disk_that_refuses_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = Settings(flow(), tmp_path / "file" / "overrides.json")
    with pytest.raises(SpillwayError, match="nothing was changed"):
        settings.change({"gold.delay": "2s"}, "ada", 1.0)
    assert settings.classes["gold"].delay == "1s"


@pytest.mark.parametrize(
    "to", [{"law": "ctrl", "headroom": 0.8}, "{law: ctrl, headroom: 0.8}"], ids=["object", "text"]
)
def test_a_load_manager_comes_with_its_parameters(path: Path, to: object) -> None:
    settings = Settings(flow(), path)
    settings.change({"gold.manager": to}, "ada", 1.0)
    assert settings.terms("gold").law == LawChoice(name="ctrl", settings={"headroom": 0.8})
    assert settings.terms("bronze").law is None  # as its gates began


def test_it_travels_to_the_gates(path: Path) -> None:
    settings = Settings(flow(), path)
    settings.change({"gold.manager": {"law": "ctrl", "headroom": 0.8}}, "ada", 1.0)
    told = Order(target=Target(delay_s=1.0), law=settings.terms("gold").law, min_keep=0.3)
    assert from_json(Order, json.loads(json.dumps(to_json(Order, told)))) == told


def test_paused_shedding_is_a_share_of_one_and_keeps_the_own_one_for_later(path: Path) -> None:
    settings = Settings(flow(), path)
    settings.change({"gold.min_keep": 0.3, "gold.shedding": "paused"}, "ada", 1.0)
    assert settings.terms("gold").min_keep == 1.0
    settings.change({"gold.shedding": "active"}, "ada", 2.0)
    assert settings.terms("gold").min_keep == 0.3
