"""Tables on their way: made by the leader, written into the log, held and used by a node."""

from dataclasses import replace
from typing import Any

import pytest
from toys import CLUSTER, MemoryLog

from spillway.cluster.fit.build import build_tables
from spillway.cluster.fit.measured import QueryCost
from spillway.cluster.fit.scenarios import scenario_tables
from spillway.cluster.fit.spread import TableSize
from spillway.cluster.views import HostView, Resources
from spillway.coding import from_json, to_json
from spillway.errors import SpillwayError
from spillway.flow.flow import Flow
from spillway.hosts.cluster.assigning import Standing
from spillway.hosts.cluster.control_log import Latest
from spillway.hosts.cluster.draft import Draft
from spillway.hosts.cluster.duties import Duties
from spillway.hosts.cluster.looking_up import LookingUp
from spillway.hosts.cluster.messages import (
    FLOW,
    LEADER,
    QUERY,
    Assignment,
    FlowGiven,
    Leadership,
    NodeReport,
    Request,
)
from spillway.hosts.cluster.requests import answered
from spillway.hosts.cluster.table_records import TableGiven, given_of, keep_of, table_of
from spillway.hosts.cluster.tabling import LIVES, ROWS, Tabling
from spillway_lab.experiments.fit.paper import TABLE_1_SELECTIVITY, figure_1

LEASE_S = 10.0
PLACES = {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}
COSTS_S = {"a1": 0.004, "a2": 0.008, "b1": 0.012, "b2": 0.004}


def flow() -> Flow:
    streams: dict[str, Any] = {f"to_{name}": {"source": "synthetic"} for name in ("a1", "a2")}
    streams |= {
        f"from_{name}": {"source": "files", "options": {"path": f"/there/{name}"}}
        for name in ("a1", "a2")
    }
    reads = {"a1": "to_a1", "a2": "to_a2", "b1": "from_a1", "b2": "from_a2"}
    return Flow.model_validate(
        {
            "streams": streams,
            "classes": {"default": {"delay": "2s"}},
            "queries": {
                name: {
                    "sql": f"SELECT * FROM {stream}",
                    "sink": {"type": "parquet", "path": f"/there/{name}"},
                }
                for name, stream in reads.items()
            },
        }
    )


class Rig:
    """A leader and its log; nodes are what they report."""

    def __init__(self, tables: str = "scenarios", places: dict[str, str] = PLACES) -> None:
        self.log = MemoryLog()
        self.latest = Latest(self.log)
        self.tabling = Tabling(LEASE_S)
        self.now_s = 0.0
        self.costs = {
            name: QueryCost(
                query=name, cost_s=cost_s, fixed_cores=0.0, selectivity=1.0, offered_per_s=100.0
            )
            for name, cost_s in COSTS_S.items()
        }
        draft = self.draft()
        body = flow().model_dump(by_alias=True, exclude={"queries", "cluster"})
        given = FlowGiven(flow=body, folder="", lease_s=LEASE_S, cores=1, tables=tables)
        draft.put(FLOW, FlowGiven, given)
        draft.put(LEADER, Leadership, Leadership(leader="x", lease_s=LEASE_S))
        for name, query in flow().queries.items():
            body = query.model_dump(by_alias=True)
            assigned = Assignment(query=body, state="runs", node=places[name], life="1")
            draft.put(QUERY + name, Assignment, assigned)
        self.places = places
        self.write(draft)

    def draft(self) -> Draft:
        self.latest.read_on()
        return Draft(self.latest, CLUSTER, "leader")

    def write(self, draft: Draft) -> int:
        records = draft.records()
        for record in records:
            self.latest.append(record)
        return len(records)

    def reports(self) -> dict[str, NodeReport]:
        capacity = Resources(cpu_cores=1.0)
        return {
            node: NodeReport(
                life="1",
                lease_s=LEASE_S,
                state="running",
                applied=0,
                running={},
                host=HostView(name=node, capacity=capacity),
                costs=tuple(self.costs[q] for q in self.costs if self.places[q] == node),
            )
            for node in sorted(set(self.places.values()))
        }

    def step(self, *, due: bool = True) -> tuple[str, int]:
        """(what was said, how many records were written)."""
        self.now_s += 1.0
        draft = self.draft()
        said = self.tabling.step(draft, self.reports(), self.now_s, due=due)
        return said, self.write(draft)

    def settle(self) -> None:
        for _ in range(ROWS + 2):
            self.step(due=False)

    def tables(self) -> dict[str, TableGiven]:
        return self.draft().tables


def test_first_tables_go_out_at_once_and_the_rest_when_it_is_there() -> None:
    rig = Rig()
    assert rig.step() == ("first tables", 2)
    assert {len(table.scores) for table in rig.tables().values()} == {1}
    rig.settle()
    assert {len(table.scores) for table in rig.tables().values()} == {ROWS}
    assert rig.step() == ("", 0)  # nothing has moved: nothing travels


def test_a_sheds_for_b_as_in_the_paper() -> None:
    rig = Rig()
    rig.step()
    rig.settle()
    keep = keep_of(table_of(rig.tables()["A"]), {"a1": 100.0, "a2": 100.0})
    assert keep["a1"] * 100.0 == pytest.approx(50.0, rel=0.02)
    assert keep["a2"] * 100.0 == pytest.approx(100.0, rel=0.02)


def test_tables_are_made_anew_when_costs_have_moved_and_only_then() -> None:
    rig = Rig()
    rig.step()
    rig.settle()
    for share, expected in ((1.02, False), (1.5, True)):
        rig.costs["b2"] = replace(rig.costs["b2"], cost_s=share * COSTS_S["b2"])
        said = [rig.step()[0] for _ in range(60)]
        assert any("anew" in text for text in said) == expected


def test_tables_are_made_anew_when_rates_have_left_their_range() -> None:
    rig = Rig()
    rig.step()
    rig.settle()
    for name in ("a1", "a2"):
        rig.costs[name] = replace(rig.costs[name], offered_per_s=150.0)
    assert rig.step()[0] == ""
    rig.costs["a1"] = replace(rig.costs["a1"], offered_per_s=300.0)
    assert "anew" in rig.step()[0]


def test_the_papers_tables_can_be_chosen() -> None:
    rig = Rig("paper")
    rig.step()
    table = rig.tables()["A"]
    assert table.values is not None
    keep = keep_of(table_of(table), {"a1": 100.0, "a2": 100.0})
    assert keep["a1"] < keep["a2"]


def test_no_tables_where_they_are_off_or_no_result_goes_to_another_node() -> None:
    assert Rig("none").step() == ("no tables: switched off", 0)
    assert Rig(places=dict.fromkeys(PLACES, "A")).step() == ("", 0)


def test_no_tables_before_all_that_is_chained_is_known() -> None:
    rig = Rig()
    known = rig.costs.pop("b1")
    assert rig.step() == ("", 0)
    rig.costs["b1"] = known
    assert rig.step()[0] == "first tables"


def test_nodes_that_feed_each_other_are_said_once_and_shed_alone() -> None:
    rig = Rig(places={"a1": "A", "b1": "B", "a2": "B", "b2": "A"})
    said, records = rig.step()
    assert said.startswith("no tables: nodes feed each other in a cycle")
    assert records == 0
    assert rig.step() == ("", 0)


def test_tables_that_cannot_be_made_are_said_once_and_end_no_leader() -> None:
    places = {"a1": "A", "a2": "C", "b1": "B", "b2": "B"}  # B has two parents
    rig = Rig("paper", places)
    said, records = rig.step()
    assert said.startswith("no tables: node 'B' has several parents")
    assert (rig.step(), records) == (("", 0), 0)
    assert Rig(places=places).step()[0] == "first tables"


def test_tables_are_taken_back_when_they_are_switched_off_while_it_runs() -> None:
    rig = Rig()
    rig.step()
    draft = rig.draft()
    standing = Standing(reports=rig.reports(), over=frozenset())
    requests = {"1": Request(kind="set", name="tables", value="none")}
    [(_, answer)] = answered(requests, draft, standing)
    assert answer.done == "tables are none now"
    rig.write(draft)
    assert rig.step()[0] == "no tables: switched off"
    assert rig.tables() == {}
    requests = {"2": Request(kind="set", name="tables", value="nil")}
    [(_, answer)] = answered(requests, rig.draft(), standing)
    assert "nil" in answer.error


@pytest.mark.parametrize("kind", ["scenarios", "paper"])
def test_a_table_that_travelled_says_the_same(kind: str) -> None:
    from numpy.random import default_rng

    topology = figure_1(TABLE_1_SELECTIVITY)
    rates = {("A", "1"): 1.0, ("A", "2"): 1.0}
    made: Any = (
        scenario_tables(topology, rates, default_rng(1))
        if kind == "scenarios"
        else build_tables(topology, TableSize(rows=64))
    )
    sent = to_json(TableGiven, given_of(made["A"], 30.0))
    received = table_of(from_json(TableGiven, sent))
    for offered in ((1.0, 1.0), (0.1, 0.1), (0.7, 2.0)):
        here, there = made["A"].look_up(offered), received.look_up(offered)
        assert there.input_keep == pytest.approx(here.input_keep, rel=1e-3, abs=1e-4)


def test_a_table_whose_parts_do_not_belong_together_is_refused() -> None:
    topology = figure_1(TABLE_1_SELECTIVITY)
    given = given_of(build_tables(topology, TableSize(rows=16))["A"], 30.0)
    with pytest.raises(SpillwayError, match="not of one length"):
        table_of(replace(given, rates=(*given.rates[:1], (1.0,))))
    with pytest.raises(SpillwayError, match="it is not used"):
        table_of(replace(given, sources=(0,)))


def test_a_node_sheds_for_itself_when_its_table_has_outlived_its_leader() -> None:
    rig = Rig()
    rig.step()
    duties, holds = Duties(node="A"), LookingUp()
    duties.read(rig.latest, "1")
    rates = {"a1": 100.0, "a2": 100.0}
    holds._hold(duties, 0.0)
    assert holds.found(rates, LIVES * LEASE_S - 1.0)
    assert holds.found(rates, LIVES * LEASE_S + 1.0) == {}
    draft = rig.draft()
    draft.put(LEADER, Leadership, Leadership(leader="x", lease_s=LEASE_S, beat=1))
    rig.write(draft)
    duties.read(rig.latest, "1")
    holds._hold(duties, LIVES * LEASE_S + 1.0)
    assert holds.found(rates, LIVES * LEASE_S + 1.0)


def test_lumps_from_other_nodes_are_not_shed_twice() -> None:
    rig = Rig()
    rig.step()
    rig.settle()
    duties, holds = Duties(node="B"), LookingUp()
    duties.read(rig.latest, "1")
    holds._hold(duties, 0.0)
    assert duties.table is not None
    assert duties.table.fed == ("b1", "b2")
    just_full = {"b1": 50.0, "b2": 100.0}
    keeps_all = {"b1": 1.0, "b2": 1.0}
    for second in range(20):
        assert holds.found(just_full, float(second)) == keeps_all
    lump = {"b1": 150.0, "b2": 0.0}
    assert holds.found(lump, 20.0) == keeps_all  # a second of it
    for second in range(21, 300):
        duties.led_at = second  # a leader goes on
        holds._hold(duties, float(second))
        found = holds.found({"b1": 100.0, "b2": 100.0}, float(second))
    assert found["b1"] == pytest.approx(0.55, abs=0.05)  # that lasts: too much by far


def test_a_node_that_is_not_in_any_chain_keeps_everything() -> None:
    rig = Rig()
    duties, holds = Duties(node="A"), LookingUp()
    duties.read(rig.latest, "1")
    holds._hold(duties, 0.0)
    assert holds.found({"a1": 100.0}, 0.0) == {}
