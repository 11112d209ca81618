"""A node's part in a move: what it waits for, what it tells the gate, what it reports."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spillway.flow.flow import Flow
from spillway.gate.offsets import Offset, encode
from spillway.gate.rules import Stretch
from spillway.handover import ALL, NOTHING_YET, Owned, Positions
from spillway.hosts.cluster import handing
from spillway.hosts.cluster.duties import Duty
from spillway.hosts.cluster.handing import Handing
from spillway.hosts.cluster.messages import Reached, Successor
from spillway.hosts.cluster.node_folder import Given, NodeFolder
from spillway.hosts.spark.driver.progress import BatchProgress
from spillway.model import Target

SQL = "SELECT count(*) AS n FROM readings GROUP BY window(event_time, '2 seconds')"
BODY = {"sql": SQL, "sink": {"type": "kafka", "brokers": "b:1", "topic": "t"}}
STREAM = {"source": "synthetic", "event_time": "event_time", "watermark": "1s"}
S = 1_000_000
AHEAD_S = 10.0


@dataclass
class ToyDispatcher:
    held: set[str] = field(default_factory=set)
    owned: dict[str, Owned] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    until: dict[str, Positions | None] = field(default_factory=dict)

    def hold(self, run: str) -> None:
        self.held.add(run)

    def let_go(self, run: str) -> None:
        self.held.discard(run)

    def own(self, run: str, owned: Owned) -> None:
        self.owned[run] = owned

    def bound(self, run: str, until: Positions | None) -> None:
        self.until[run] = until

    def stands_still(self, run: str) -> bool:
        return run in self.held - self.running


class ToyNode:
    """One checkpoint of the query, whose batches the test lets end."""

    def __init__(
        self, shared: Path, run: str, state: str = "running", delay_s: float = 1.0
    ) -> None:
        name, _, generation = run.partition("@")
        self.run, self.seq = run, 0
        self.folder = NodeFolder(root=shared / "node", shared=shared)
        self.folder.given[run] = Given(name=name, generation=int(generation or 1), epoch=1)
        self.dispatcher = ToyDispatcher()
        flow = Flow.model_validate(
            {
                "streams": {"readings": STREAM},
                "classes": {"default": {"delay": "2s"}},
                "queries": {name: BODY},
            }
        )
        queries = {run: flow.queries[name]}
        self.application: Any = SimpleNamespace(
            dispatcher=self.dispatcher,
            progress={},
            flow=flow.model_copy(update={"queries": queries}),
            gates=SimpleNamespace(follows=None),
            states=SimpleNamespace(of=lambda run: state),
            delivered=lambda run: [SimpleNamespace(mean_delay_s=delay_s, duration_s=1.0)] * 9,
            target=lambda name: Target(delay_s=2.0),
            streams_of=lambda run: ("readings",),
        )
        self.handing = Handing(self.application, self.folder, AHEAD_S)

    def batch_ends(
        self, newest_us: int, watermark_us: int = 0, owned: Owned | None = None
    ) -> Offset:
        self.seq += 1
        offset = Offset(
            gate=f"{self.run}/readings",
            began_us=1,
            seq=self.seq,
            planned_us=1,
            stretches=(Stretch(partition=0, start=0, read=0, stop=self.seq),),
            owned=owned,
        )
        checkpoint = self.folder.checkpoint(self.run)
        for folder in ("offsets", "commits"):
            (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        line = json.dumps(encode(offset))
        (checkpoint / "offsets" / str(self.seq)).write_text(f"v1\n{{}}\n{line}")
        (checkpoint / "commits" / str(self.seq)).write_text("v1\n{}")
        self.application.progress[self.run] = BatchProgress(
            query=self.run,
            run_id="r",
            batch_id=self.seq,
            started_s=0.0,
            duration_s=0.1,
            input_rows=1,
            phases_s={},
            sources=({"endOffset": encode(offset)},),
            newest_us=newest_us,
            watermark_us=watermark_us,
        )
        return offset

    def look(self, duty: Duty) -> Reached | None:
        self.handing.look({self.run: duty}, {self.run})
        return self.handing.reached.get(self.run)

    def begins(self, duty: Duty) -> None:
        """What its gates find told when they ask first."""
        assert self.handing.may_start(self.run, duty)


def duty(move: Successor | None, follows: int | None = None, **more: Any) -> Duty:
    generation = 1 if follows is None and "from_us" not in more else 2
    given = {"name": "counts", "epoch": 1, "generation": generation, "query": BODY, "reason": ""}
    return Duty(move=move, follows=follows, **(given | more))


MOVE = Successor(query=BODY, generation=2)
CUTS = replace(MOVE, state="cuts", read_us=300 * S)


def test_an_origin_goes_on_until_it_is_asked_to_cut(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts")
    node.batch_ends(100 * S)
    assert node.look(duty(MOVE)) is None
    assert (node.dispatcher.held, node.dispatcher.owned) == (set(), {})


def test_the_cut_is_later_than_all_that_either_side_has_read(tmp_path: Path) -> None:
    for newest_us, latest_us in ((100 * S, 300 * S), (400 * S, 400 * S)):
        node = ToyNode(tmp_path / str(newest_us), "counts")
        node.batch_ends(newest_us)
        assert node.look(duty(CUTS)) is None
        owned = node.dispatcher.owned["counts"]
        assert owned.from_us == 0
        assert latest_us + AHEAD_S * S <= owned.until_us < latest_us + (AHEAD_S + 1) * S
        assert node.dispatcher.held == set()


def test_a_late_row_does_not_hide_what_was_read_before(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts")
    node.batch_ends(100 * S, watermark_us=499 * S)  # a row at 500 s had come before
    node.look(duty(CUTS))
    assert node.dispatcher.owned["counts"].until_us >= (500 + AHEAD_S) * S


def test_no_cut_is_chosen_while_a_batch_runs_or_is_planned(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts")
    node.batch_ends(100 * S)
    node.dispatcher.running = {"counts"}
    node.look(duty(CUTS))
    assert (node.dispatcher.owned, node.dispatcher.held) == ({}, {"counts"})
    node.dispatcher.running = set()
    planned = node.folder.checkpoint("counts") / "offsets" / "2"
    planned.write_text((planned.parent / "1").read_text())
    node.look(duty(CUTS))
    assert node.dispatcher.owned == {}
    planned.unlink()
    node.look(duty(CUTS))
    assert "counts" in node.dispatcher.owned


def test_an_origin_goes_on_when_its_cut_stands(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts")
    node.batch_ends(100 * S)
    node.look(duty(CUTS))
    node.dispatcher.running = {"counts"}
    node.look(duty(CUTS))  # the batch with the cut is under way
    node.dispatcher.running = set()
    node.batch_ends(101 * S, owned=node.dispatcher.owned["counts"])
    node.look(duty(CUTS))
    assert node.dispatcher.held == set()


def test_an_origin_has_cut_when_the_batch_has_ended_and_is_done_behind_its_last_window(
    tmp_path: Path,
) -> None:
    node = ToyNode(tmp_path, "counts")
    own = Owned(until_us=200 * S)
    node.batch_ends(190 * S, watermark_us=180 * S, owned=own)
    assert node.look(duty(CUTS)) == Reached(until_us=200 * S)
    node.batch_ends(203 * S, watermark_us=201 * S, owned=own)
    assert node.look(duty(CUTS)) == Reached(until_us=200 * S)
    node.batch_ends(204 * S, watermark_us=202 * S, owned=own)
    assert node.look(duty(CUTS)) == Reached(until_us=200 * S, finished=True)
    assert node.dispatcher.held == set()


def test_a_successor_waits_for_an_origin_that_has_ended_a_batch(tmp_path: Path) -> None:
    node, follower = ToyNode(tmp_path, "counts"), duty(MOVE, follows=1)
    there = ToyNode(tmp_path, "counts@2")
    assert not there.handing.may_start("counts@2", follower)
    offset = node.batch_ends(100 * S)
    assert there.handing.may_start("counts@2", follower)
    told = there.application.gates.follows("counts@2", "readings")
    assert json.loads(told) == encode(offset)
    assert there.application.gates.follows("others", "readings") is None


def test_a_successor_that_has_caught_up_stands_still_until_it_is_told_the_cut(
    tmp_path: Path,
) -> None:
    node = ToyNode(tmp_path, "counts@2")
    node.batch_ends(100 * S, owned=NOTHING_YET)
    reached = node.look(duty(MOVE, follows=1))
    assert reached is not None
    assert reached.read_us is not None
    assert 100 * S < reached.read_us < 101 * S
    assert node.dispatcher.held == {"counts@2"}
    node.look(duty(replace(CUTS, state="cuts"), follows=1))
    assert node.dispatcher.held == {"counts@2"}
    takes = replace(MOVE, state="takes", from_us=200 * S)
    assert node.look(duty(takes, follows=1, from_us=200 * S)) is None
    assert node.dispatcher.held == set()
    assert node.dispatcher.owned["counts@2"] == Owned(from_us=200 * S)


def test_a_successor_that_hears_first_that_the_move_is_over_takes_what_is_its_own(
    tmp_path: Path,
) -> None:
    node = ToyNode(tmp_path, "counts@2")
    node.batch_ends(100 * S, owned=NOTHING_YET)
    node.look(duty(MOVE, follows=1))
    assert node.look(duty(None, from_us=200 * S)) is None
    assert node.dispatcher.held == set()
    assert node.dispatcher.owned["counts@2"] == Owned(from_us=200 * S)


def test_an_origin_that_was_a_successor_hands_over_only_what_is_its_own(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts@2")
    node.batch_ends(100 * S, owned=NOTHING_YET)  # it has not heard of its own cut yet
    node.look(duty(CUTS, from_us=400 * S))
    owned = node.dispatcher.owned["counts@2"]
    assert owned.from_us == 400 * S
    assert owned.until_us > 400 * S


def test_a_successor_that_has_caught_up_comes_to_rest_whatever_comes_meanwhile(
    tmp_path: Path,
) -> None:
    node = ToyNode(tmp_path, "counts@2")
    node.batch_ends(100 * S, owned=NOTHING_YET)
    node.dispatcher.running = {"counts@2"}
    assert node.look(duty(MOVE, follows=1)) is None
    node.dispatcher.running = set()
    node.application.states = SimpleNamespace(of=lambda run: "catching up")
    reached = node.look(duty(MOVE, follows=1))
    assert reached is not None
    assert reached.has_caught_up


@pytest.mark.parametrize(("state", "delay_s"), [("catching up", 1.0), ("running", 9.0)])
def test_a_successor_that_is_behind_goes_on(tmp_path: Path, state: str, delay_s: float) -> None:
    node = ToyNode(tmp_path, "counts@2", state, delay_s)
    node.batch_ends(100 * S, owned=NOTHING_YET)
    assert node.look(duty(MOVE, follows=1)) is None
    assert node.dispatcher.held == set()


def test_a_successor_that_starts_again_after_it_had_caught_up_stands_still_at_once(
    tmp_path: Path,
) -> None:
    node = ToyNode(tmp_path, "counts@2", state="starting")
    node.look(duty(CUTS, follows=1))
    assert node.dispatcher.held == {"counts@2"}


# -- rows: every batch of these nodes takes one more of them

ROWS = {**BODY, "sql": "SELECT id FROM readings"}
ROW_CUTS = Successor(query=ROWS, generation=2, state="cuts", read_at={"readings": {0: 5}})


def rows(move: Successor | None, follows: int | None = None, **more: Any) -> Duty:
    return duty(move, follows, query=ROWS, **({"generation": 2 if follows else 1} | more))


def test_an_origin_of_rows_reads_up_to_where_both_have_been_and_no_further(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts")
    node.batch_ends(0)
    node.dispatcher.running = {"counts"}
    assert node.look(rows(ROW_CUTS)) is None  # between two batches
    node.dispatcher.running = set()
    until: Positions = {"readings": {0: 5}}
    assert node.look(rows(ROW_CUTS)) == Reached(until_at=until)
    assert (node.dispatcher.until, node.dispatcher.held) == ({"counts": until}, set())
    for _ in range(4):
        node.batch_ends(0)
    assert node.look(rows(ROW_CUTS)) == Reached(until_at=until, finished=True)


def test_an_origin_of_rows_that_stands_further_is_done_at_once(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts")
    for _ in range(8):
        node.batch_ends(0)
    assert node.look(rows(ROW_CUTS)) == Reached(until_at={"readings": {0: 8}}, finished=True)


def test_an_origin_of_rows_that_starts_again_stands_still_before_its_first_batch(
    tmp_path: Path,
) -> None:
    node = ToyNode(tmp_path, "counts")
    node.begins(rows(ROW_CUTS))
    assert node.dispatcher.held == {"counts"}


def test_a_successor_of_rows_says_where_it_stands(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts@2")
    node.batch_ends(0, owned=NOTHING_YET)
    follows = replace(ROW_CUTS, state="follows", read_at=None)
    assert node.look(rows(follows, follows=1)) == Reached(read_at={"readings": {0: 1}})
    assert node.dispatcher.held == {"counts@2"}


def test_a_successor_of_rows_to_which_nothing_comes_has_caught_up_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = ToyNode(tmp_path, "counts@2", state="no tuples yet")
    node.batch_ends(0, owned=NOTHING_YET)
    follows = replace(ROW_CUTS, state="follows", read_at=None)
    assert node.look(rows(follows, follows=1)) is None
    assert node.dispatcher.held == set()  # a moment ago it had not even asked
    monkeypatch.setattr(handing, "_QUIET_S", 0.0)
    assert node.look(rows(follows, follows=1)) == Reached(read_at={"readings": {0: 1}})


def test_a_successor_of_rows_is_silent_up_to_the_cut_to_the_tuple_and_then_owns_all(
    tmp_path: Path,
) -> None:
    node, run = ToyNode(tmp_path, "counts@2"), "counts@2"
    given = rows(None, generation=2, from_at={"readings": {0: 2}})
    node.batch_ends(0, owned=NOTHING_YET)
    node.dispatcher.held = {run}
    node.look(given)
    assert node.dispatcher.until[run] == {"readings": {0: 2}}
    assert (node.dispatcher.owned, node.dispatcher.held) == ({}, set())
    node.batch_ends(0, owned=NOTHING_YET)
    node.look(given)
    assert node.dispatcher.until[run] is None
    assert node.dispatcher.owned[run] == ALL
    node.batch_ends(0, owned=ALL)
    node.dispatcher.owned.clear()
    for _ in range(3):
        node.look(given)
    assert (node.dispatcher.owned, node.dispatcher.until) == ({}, {run: None})


def test_a_successor_of_rows_that_starts_again_knows_its_bound_before_its_first_batch(
    tmp_path: Path,
) -> None:
    node, given = ToyNode(tmp_path, "counts@2"), rows(None, from_at={"readings": {0: 2}})
    node.begins(given)
    assert node.dispatcher.until["counts@2"] == {"readings": {0: 2}}


def test_an_origin_of_rows_that_has_not_taken_its_own_yet_does_that_first(tmp_path: Path) -> None:
    node = ToyNode(tmp_path, "counts@2")
    given = rows(replace(ROW_CUTS, generation=3), generation=2, from_at={"readings": {0: 2}})
    node.batch_ends(0, owned=NOTHING_YET)
    assert node.look(given) is None
    assert node.dispatcher.until["counts@2"] == {"readings": {0: 2}}
    node.batch_ends(0, owned=NOTHING_YET)
    assert node.look(given) is None
    node.batch_ends(0, owned=ALL)
    assert node.look(given) == Reached(until_at={"readings": {0: 5}})


# -- what it cost


def test_a_query_that_was_stopped_there_and_started_here_says_how_long_it_paused(
    tmp_path: Path,
) -> None:
    there, here = ToyNode(tmp_path, "counts"), ToyNode(tmp_path, "counts")
    there.batch_ends(0)
    commits = here.folder.checkpoint("counts") / "commits"
    os.utime(commits / "1", (1000.0, 1000.0))
    here.begins(duty(None))
    here.seq = 1
    assert here.look(duty(None)) is None
    assert here.handing.said() == {}
    here.batch_ends(0)
    os.utime(commits / "2", (1012.5, 1012.5))
    here.look(duty(None))
    assert here.handing.said() == {"counts": Reached(pause_s=12.5)}
    here.handing.forget("counts")
    assert here.handing.said() == {}
