"""What of `fit-live` needs no Spark: its networks, its phases, and how rates are read off."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spillway.check.plan import plan_of
from spillway.cluster.fit.measured import Network, QueryCost
from spillway.flow.flow import Flow
from spillway.hosts.cluster.suitable import require_suitable
from spillway_lab.experiments.fit import live
from spillway_lab.experiments.fit.live_cluster import _rate, _settled_s
from spillway_lab.experiments.fit.live_networks import PAPER, TREE, LiveNetwork, body_of, flow_of
from spillway_lab.experiments.report import Setup


@pytest.mark.parametrize("network", [PAPER, TREE])
def test_the_networks_are_flows_that_span_their_nodes(network: LiveNetwork, tmp_path: Path) -> None:
    given = flow_of(network, tmp_path, [(0.0, 0.5), (10.0, 2.0)])
    given["queries"] = {query.name: body_of(query, tmp_path) for query in network.queries}
    flow = Flow.model_validate(given)
    require_suitable(flow)
    assert len(plan_of(flow).network()) == len(network.queries)
    assert len({query.node for query in network.queries}) == network.nodes


@pytest.mark.parametrize("network", [PAPER, TREE])
def test_the_streams_fill_the_first_node(network: LiveNetwork) -> None:
    rates = live._rates(network, 1.0)
    load = sum(rates[query.name] * query.cost_ms / 1e3 for query in network.roots)
    assert load == pytest.approx(1.0)


def test_every_overload_is_run_with_tables_and_without() -> None:
    phases = live._phases(100.0)
    assert [kind for kind, _, _ in phases] == ["scenarios"] * 3 + ["none"] * 3
    assert phases[0][2] == 100.0
    assert [load for _, load in live._profile()[1:]] == [2.0, 4.0, 8.0, 2.0, 4.0, 8.0]


def test_the_optimum_is_that_of_the_mean_of_what_was_measured() -> None:
    network = Network(
        node_of={"a1": "A", "b1": "B"}, slots={"A": 1.0, "B": 1.0}, readers={"a1": ("b1",)}
    )

    def costs(b1_s: float) -> dict[str, QueryCost]:
        return {
            name: QueryCost(
                query=name, cost_s=cost_s, fixed_cores=0.1, selectivity=1.0, offered_per_s=1.0
            )
            for name, cost_s in (("a1", 0.001), ("b1", b1_s))
        }

    seen = [(network, costs(0.010)), (network, costs(0.020))]
    assert live._optimum(seen, {"a1": 500.0}) == pytest.approx(0.9 / 0.015)


def test_rates_run_from_commit_to_commit(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    for batch in range(5):
        path = tmp_path / f"part-{batch}.parquet"
        pq.write_table(pa.table({"id": list(range(40))}), path)
        entry = {"path": path.as_uri(), "modificationTime": 10_000 * batch, "action": "add"}
        (tmp_path / "_spark_metadata" / str(batch)).write_text("v1\n" + json.dumps(entry))
    assert _rate(tmp_path, 15.0, 35.0) == pytest.approx(4.0)
    assert _rate(tmp_path / "nothing", 0.0, 1.0) == 0.0


def test_a_gate_has_reacted_when_it_goes_on_with_what_it_drops() -> None:
    plans = [(1.0, 1.0), (4.0, 0.6), (7.0, 0.21), (9.0, 0.2), (12.0, 0.2)]
    assert _settled_s(plans) == 7.0
    assert _settled_s([]) is None


def test_the_checks_fail_where_tables_do_not_help() -> None:
    good = {"fit": 95.0, "alone": 80.0, "optimum": 100.0}
    assert all(check.holds for check in live._checks({"x": good}))
    short, worse = {**good, "fit": 85.0}, {**good, "alone": 97.0}
    assert not live._checks({"x": good, "y": short})[0].holds
    assert not live._checks({"x": good, "y": worse})[1].holds


def test_in_virtual_time_nodes_that_shed_for_each_other_deliver_more() -> None:
    results = live._simulated(PAPER, Setup(plant="sim", seed=1))
    for found in results.values():
        assert found["fit"] >= 0.85 * found["optimum"]
        assert found["fit"] > 1.1 * found["alone"]
