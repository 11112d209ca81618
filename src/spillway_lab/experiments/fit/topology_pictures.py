"""The picture of `fit-topologies`: quality, time to react, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from spillway.pictures import label, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from spillway_lab.experiments.fit.random_runs import TreeRun


def draw(trees: Sequence[TreeRun], dags: Sequence[Mapping[str, float]]) -> Figure:
    figure, (quality, dag, react, travel) = panels(2, 2, height=3.0)
    nodes = [t.nodes for t in trees]
    quality.semilogx(nodes, [t.quality for t in trees], "o", color="#1f77b4", label="tables")
    quality.semilogx(
        nodes,
        [t.uncoordinated / t.optimum for t in trees],
        "x",
        color="#d62728",
        label="each alone",
    )
    label(quality, x="nodes", y="score / optimum", title="Trees")
    sizes = [d["nodes"] for d in dags]
    dag.semilogx(sizes, [d["quality"] for d in dags], "o-", color="#1f77b4", label="by prices")
    dag.semilogx(
        sizes, [d["proportional"] for d in dags], "x--", color="#ff7f0e", label="shares by load"
    )
    label(dag, x="nodes", y="score / optimum", title="Several parents")
    for axis in (quality, dag):
        axis.axhline(1.0, color="black", linewidth=0.8)
        axis.set_ylim(0.0, 1.05)
    react.loglog(nodes, [t.look_up_us * 1e-3 for t in trees], "o", label="look-up (local)")
    react.loglog(nodes, [t.update_s * 1e3 for t in trees], "s", label="update to the root")
    react.loglog(nodes, [t.optimum_s * 1e3 for t in trees], "^", label="linear programme")
    react.loglog(nodes, [t.built_s * 1e3 for t in trees], "d", label="all tables")
    label(react, x="nodes", y="ms", title="Time to react")
    travel.loglog(nodes, [t.first_bytes for t in trees], "o", label="all tables, once")
    changed = [t for t in trees if t.update_bytes]
    travel.loglog(
        [t.nodes for t in changed],
        [t.update_bytes for t in changed],
        "s",
        label="one leaf changes",
    )
    label(travel, x="nodes", y="bytes", title="What travels")
    for axis in (quality, dag, react, travel):
        axis.legend(frameon=False, fontsize=8)
    return figure
