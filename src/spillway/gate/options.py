"""The options of format("spillway"), apart from those of the log. Spark ignores their case."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from spillway.errors import SpillwayError, require, unknown_name
from spillway.gate.masks import QueryShare, parse_shares
from spillway.gate.rules import POLICIES, Policy
from spillway.gate.shedders.catalog import asked_shedder
from spillway.gate.shedders.shedder import Shedder
from spillway.gate.split import Split
from spillway.hosts.spark.option_names import lowered
from spillway.logs import options as typed
from spillway.model import Target, parse_duration_s

NEVER_UNREAD = 1e-6  # a min_keep with which no range is skipped unread


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    target: Target = field(default_factory=lambda: Target(delay_s=2.0))
    manager: str = "predictive"
    law_parameters: Mapping[str, object] = field(default_factory=dict)
    period_s: float = 1.0
    policy: Policy = "uniform"
    min_keep: float = 0.0
    dry_run: bool = False
    weight: bool = False
    place: bool = False
    kept_from: bool = False
    selection: Shedder | None = None  # one that looks at the data
    masks: tuple[QueryShare, ...] = ()
    split: Split | None = None
    instances: str | None = None
    heartbeat_column: str | None = None
    heartbeat_rows: bool = False  # the schema has room for them: column _heartbeat
    quiet_s: float = 2.0
    parallelism: int = 2
    first_batch: int = 10_000
    max_batch: int | None = None
    poll_s: float = 1.0
    starting_offsets: str = "latest"
    fail_on_data_loss: bool = False
    seed: int = 0
    ledger: str | None = None
    checkpoint: str | None = None
    trigger_s: float | None = None
    joint: str | None = None
    channel: str | None = None
    class_name: str = "default"
    gate: str | None = None
    query: str | None = None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "GateOptions":
        given = lowered(options)
        target = Target.parse(given.get("delay", "2s"))
        policy = given.get("policy", "uniform")
        if policy not in POLICIES:
            raise unknown_name("policy", policy, POLICIES)
        min_keep = typed.number(given, "min_keep", 0.0)
        require(0.0 <= min_keep <= 1.0, "option 'min_keep'", min_keep, "from 0 to 1")
        checkpoint = _local(given.get("checkpoint"))
        trigger = given.get("trigger")
        if trigger is not None and (checkpoint is None or "://" in checkpoint):
            raise SpillwayError(
                "option 'trigger' needs option 'checkpoint' with a folder on the driver's disk:"
                " with an interval the gate reads the end of a batch from Spark's commit log"
            )
        masks = parse_shares(given.get("masks", ""))
        split = Split.parse(given["split"]) if "split" in given else None
        if (masks or split) and typed.flag(given, "weight"):
            raise SpillwayError(
                "options 'masks' and 'split' exclude 'weight': every query has another weight"
            )
        if split is not None and (masks or policy == "fresh" or "joint" in given):
            raise SpillwayError(
                "option 'split' excludes option 'masks', policy 'fresh' and several gates in a"
                " query: leave one of them out"
            )
        selection = asked_shedder(given, given.get("heartbeat"))
        if selection is not None and (masks or split or policy == "fresh"):
            raise SpillwayError(
                f"shedder '{selection.name}' excludes option 'masks' and policy 'fresh':"
                " it chooses by what the tuples hold"
            )
        whole_windows = selection is not None and selection.whole_windows is not None
        return cls(
            target=target,
            manager=given.get("manager", "predictive"),
            law_parameters=_law_parameters(given),
            period_s=typed.seconds(given, "period", "1s"),
            policy=policy,
            min_keep=max(min_keep, NEVER_UNREAD) if whole_windows else min_keep,
            dry_run=typed.flag(given, "dry_run"),
            weight=typed.flag(given, "weight"),
            place=typed.flag(given, "place"),
            kept_from=typed.flag(given, "kept_from"),
            selection=selection,
            masks=masks,
            split=split,
            instances=given.get("instances"),
            heartbeat_column=given.get("heartbeat"),
            quiet_s=typed.seconds(given, "quiet", f"{target.delay_s}s"),
            parallelism=typed.whole(given, "parallelism", os.cpu_count() or 1, least=1),
            first_batch=typed.whole(given, "first_batch", 10_000, least=1),
            max_batch=typed.whole(given, "max_batch", 0) or None,
            poll_s=typed.seconds(given, "poll", "1s"),
            starting_offsets=given.get("startingoffsets", "latest"),
            fail_on_data_loss=typed.flag(given, "failondataloss"),
            seed=typed.whole(given, "seed", 0),
            ledger=given.get("ledger") or _default_ledger(checkpoint),
            checkpoint=checkpoint,
            trigger_s=None if trigger is None else parse_duration_s(trigger, "option 'trigger'"),
            joint=given.get("joint"),
            channel=given.get("channel"),
            class_name=given.get("class", "default"),
            gate=given.get("gate"),
            query=given.get("query"),
        )


def _local(checkpoint: str | None) -> str | None:
    """Spark takes a folder as a path and as a URI."""
    if checkpoint is None or not checkpoint.startswith("file:"):
        return checkpoint
    return checkpoint.removeprefix("file:").replace("///", "/", 1)


def _default_ledger(checkpoint: str | None) -> str | None:
    """Beside Spark's own logs, which Spark never purges; only a local disk can be appended to."""
    if checkpoint is None or "://" in checkpoint:
        return None
    return os.path.join(checkpoint, "spillway", "ledger.jsonl")


def _law_parameters(given: Mapping[str, str]) -> dict[str, str]:
    names = [name for name in given if name.startswith("manager.")]
    return {name.removeprefix("manager."): given[name] for name in names}
