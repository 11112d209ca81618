"""The options of a gate, apart from those of its log: declared once, and read into GateOptions."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from spillway.errors import SpillwayError
from spillway.gate.checkpoints import default_ledger, place_of, require_local
from spillway.gate.combination import Combination
from spillway.gate.masks import QueryShare, parse_shares
from spillway.gate.rules import POLICIES, Policy
from spillway.gate.shed_limit import ShedLimit
from spillway.gate.shedders import catalog
from spillway.gate.shedders.shedder import Shedder
from spillway.gate.split import Split
from spillway.load import laws
from spillway.model import Target
from spillway.options import Option, lowered, read
from spillway.uris import is_remote

NEVER_UNREAD = 1e-6  # a min_keep with which no range is skipped unread

Backlogs = Literal["catch-up", "cut"]
BACKLOGS: tuple[Backlogs, ...] = ("catch-up", "cut")

FAIL_ON_DATA_LOSS = Option(
    "failOnDataLoss",
    "flag",
    "stop when the log dropped unread tuples, as Spark's own source; false counts them",
    default=True,
)
OPTIONS: tuple[Option, ...] = (
    Option(
        "delay",
        "target",
        "needed: target with its statistic, `p95 2s`; `2s` is a mean",
        default="2s",
    ),
    Option(
        "manager", "text", "the load manager: `none`, `fixed`, `aloma`, ...", default="predictive"
    ),
    Option("manager.NAME", "text", "a parameter of the load manager, such as manager.headroom"),
    Option("period", "duration", "control period of the laws that have one", default="1s"),
    Option(
        "policy",
        "choice",
        "which tuples go: a uniform sample stays, or the newest",
        default="uniform",
        choices=POLICIES,
    ),
    Option(
        "shedder",
        "choice",
        "how tuples are chosen, as in docs/shedding.md",
        default=catalog.UNIFORM,
        choices=catalog.names(),
    ),
    *catalog.options(),
    Option(
        "min_keep",
        "number",
        "never keep less than this fraction of what a batch consumes",
        default=0,
        at_least=0,
        at_most=1,
    ),
    Option(
        "backlog",
        "choice",
        "what waited before the gate could serve it: worked off, late and whole, or cut",
        default="catch-up",
        choices=BACKLOGS,
    ),
    Option(
        "catch_up_within",
        "duration",
        "a backlog that takes longer to work off loses its oldest tuples",
        default="10m",
    ),
    Option("max_shed", "text", "`20% per 10m`: beyond it the delay gives way, not the data"),
    Option("dry_run", "flag", "decide and record, drop nothing", default=False),
    Option(
        "parallelism",
        "whole",
        "input partitions of a batch",
        without="the number of cores",
        at_least=1,
        at_most=100_000,
        also=("minPartitions",),
    ),
    Option(
        "first_batch",
        "whole",
        "the first batch, before any cost is known",
        unit="tuples",
        default=10_000,
        at_least=1,
    ),
    Option(
        "max_batch",
        "whole",
        "most that a batch keeps, whatever the load manager says; 0 is no bound",
        unit="tuples",
        default=0,
        at_least=0,
        also=("maxOffsetsPerTrigger",),
    ),
    Option("poll", "duration", "how long one trigger waits for tuples at most", default="1s"),
    Option(
        "startingOffsets",
        "text",
        "first start: `latest`, `earliest` or the JSON of Spark's Kafka source",
        default="latest",
    ),
    FAIL_ON_DATA_LOSS,
    Option(
        "ledger",
        "text",
        "file of finished batches, or a folder of segments as URI (s3a:, gs:, abfs:, hdfs:)",
        without="`spillway/ledger.jsonl` in `checkpoint`, as URI `spillway/ledger`; else none",
    ),
    Option(
        "checkpoint",
        "text",
        "the query's checkpointLocation, a path or a URI; a source is not told it",
    ),
    Option("trigger", "duration", "interval of a processing-time trigger; needs `checkpoint`"),
    Option("heartbeat", "text", "event-time column: rows that move a silent stream's watermark"),
    Option(
        "quiet",
        "duration",
        "how long a stream is silent before a heartbeat",
        without="the delay target",
    ),
    Option("joint", "text", "a name shared by the gates of one query: they decide together"),
    Option("seed", "whole", "of the sampling", default=0, at_least=0),
    Option("arrival", "flag", "adds `_arrival`, when the tuple arrived", default=False),
    Option(
        "weight",
        "flag",
        "adds `_weight`, one over the chance that the tuple was kept; nothing is skipped unread",
        default=False,
    ),
    Option(
        "schema", "text", "columns as DDL, in place of .schema(...), for logs without their own"
    ),
    Option(
        "gate",
        "text",
        "the gate's name in journal and ledger",
        without="`query`, else a random one",
    ),
    Option(
        "record",
        "text",
        "file for all that the gate is told and answers, to be decided again elsewhere",
    ),
    Option("class", "text", "the service class in journal and ledger", default="default"),
    Option("query", "text", "the query's name in the journal", without="the gate's name"),
    Option(
        "place",
        "flag",
        "adds `_place`, the tuple's number among all that were consumed, and `_gap_until`",
        default=False,
        set_by="run",
    ),
    Option(
        "kept_from",
        "flag",
        "shedder `windows`: adds `_kept_from`, since when all stayed",
        default=False,
        set_by="run",
    ),
    Option("masks", "text", "query:ppm,... of a fused plan; adds `_queries`, bit k: k sees it"),
    Option(
        "split",
        "text",
        "shared:cost,query:cost:weight,...; adds `_queries`, masks by what is cheapest to drop",
    ),
    Option("instances", "text", "file with a template's instances; adds `_version`", set_by="run"),
    Option("combine", "text", "partial rows in place of tuples, as JSON", set_by="run"),
    Option("channel", "text", "socket of the control loop", set_by="run"),
    Option("leased", "flag", "plans only while the driver allows it", default=False, set_by="run"),
    Option("follows", "text", "offset of the checkpoint that this one goes on from", set_by="run"),
)


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What the options say, with what follows from several of them."""

    target: Target
    manager: str
    law_parameters: Mapping[str, object]
    period_s: float
    policy: Policy
    min_keep: float
    backlog: Backlogs
    catch_up_within_s: float
    max_shed: ShedLimit | None
    dry_run: bool
    arrival: bool
    weight: bool
    place: bool
    kept_from: bool
    selection: Shedder | None  # of a shedder that looks at the data
    masks: tuple[QueryShare, ...]
    split: Split | None
    instances: str | None
    combine: Combination | None
    heartbeat_column: str | None
    heartbeat_rows: bool = False  # the schema has room for them: column _heartbeat
    quiet_s: float
    parallelism: int
    first_batch: int
    max_batch: int | None
    poll_s: float
    starting_offsets: str
    fail_on_data_loss: bool
    seed: int
    ledger: str | None
    checkpoint: str | None
    trigger_s: float | None
    joint: str | None
    channel: str | None
    leased: bool
    follows: str | None
    class_name: str
    gate: str | None
    query: str | None
    record: str | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "GateOptions":
        given = read(OPTIONS, options)
        masks = parse_shares(given["masks"] or "")
        split = Split.parse(given["split"]) if given["split"] else None
        selection = catalog.asked_shedder(lowered(options), given["heartbeat"])
        checkpoint = place_of(given["checkpoint"])
        require_local("record", given["record"])
        _refuse_together(given, checkpoint, selection)
        whole_windows = selection is not None and selection.whole_windows is not None
        # A tuple without a chance has no weight, and one side of a join must not run ahead.
        needs_all = given["weight"] or whole_windows or given["joint"] is not None
        made = {
            "target": given["delay"],
            "law_parameters": laws.checked(given["manager"], given["manager.NAME"]),
            "period_s": given["period"],
            "min_keep": max(given["min_keep"], NEVER_UNREAD if needs_all else 0.0),
            "catch_up_within_s": given["catch_up_within"],
            "max_shed": ShedLimit.parse(given["max_shed"]) if given["max_shed"] else None,
            "selection": selection,
            "combine": Combination.parse(given["combine"]) if given["combine"] else None,
            "masks": masks,
            "split": split,
            "heartbeat_column": given["heartbeat"],
            "quiet_s": given["quiet"] or given["delay"].delay_s,
            "parallelism": given["parallelism"] or os.cpu_count() or 1,
            "max_batch": given["max_batch"] or None,
            "poll_s": given["poll"],
            "starting_offsets": given["startingOffsets"],
            "fail_on_data_loss": given["failOnDataLoss"],
            "ledger": place_of(given["ledger"]) or default_ledger(checkpoint),
            "checkpoint": checkpoint,
            "trigger_s": given["trigger"],
            "class_name": given["class"],
            "gate": given["gate"] or given["query"],
        }
        as_given = {field.name: given[field.name] for field in fields(cls) if field.name in given}
        return cls(**{**as_given, **made})


def _refuse_together(
    given: Mapping[str, Any], checkpoint: str | None, selection: Shedder | None
) -> None:
    """Raise for options that exclude or need each other."""
    masked, fresh = given["masks"] or given["split"], given["policy"] == "fresh"
    if given["trigger"] is not None and (checkpoint is None or is_remote(checkpoint)):
        raise SpillwayError(
            "option 'trigger' needs option 'checkpoint' with a folder on the driver's disk:"
            " with an interval the gate reads the end of a batch from Spark's commit log"
        )
    if masked and given["weight"]:
        raise SpillwayError(
            "options 'masks' and 'split' exclude 'weight': every query has another weight"
        )
    if given["split"] and (given["masks"] or fresh or given["joint"]):
        raise SpillwayError(
            "option 'split' excludes option 'masks', policy 'fresh' and several gates in a"
            " query: leave one of them out"
        )
    if selection is not None and (masked or fresh):
        raise SpillwayError(
            f"shedder '{selection.name}' excludes option 'masks' and policy 'fresh':"
            " it chooses by what the tuples hold"
        )
