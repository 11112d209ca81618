"""The audit of counts that came from data: the log is read again, and the rule asked again.

A shedder that looks at the data has its counts from the planner's look (keys, windows), or they
follow from positions (utility, strata). An offset alone can only show that they add up.
"""

from spillway.gate.offsets import Offset
from spillway.gate.shedders.blocks import keep, read_block, spans
from spillway.ports import Log


def is_measured(offset: Offset) -> bool:
    """Whether the batch's count was found in the data, so that nothing in the offset checks it."""
    selection = offset.rule.selection
    return selection is not None and selection.kept_tuples is not None and offset.scanned_tuples > 0


def still_there(offset: Offset, log: Log, now_s: float) -> bool:
    """Whether the log has all that the batch read."""
    extent = {span.partition: span for span in log.extent(now_s)}
    read = [s for s in offset.stretches if s.scanned_tuples > 0]
    return all(
        s.partition in extent
        and extent[s.partition].start <= s.read
        and s.stop <= extent[s.partition].stop
        for s in read
    )


def difference(offset: Offset, log: Log) -> str | None:
    """What the log says against the batch's count; None: it agrees.

    The log does not say which positions hold no row (a transaction's marker, a malformed record),
    nor did the gate know when it counted: as many as there are of them it may have admitted more.
    """
    kept = holes = 0
    for stretch in offset.stretches:
        for span in spans(stretch):
            rows = read_block(log, span)
            holes += span.tuples - (0 if rows is None else rows.num_rows)
            kept += 0 if rows is None else keep(rows, span, offset.rule).tuples
    admitted = offset.kept_tuples()
    if kept <= admitted <= kept + holes:
        return None
    up_to = f" to {kept + holes}" if holes else ""
    return f"batch {offset.seq}: admitted {admitted}, but its rule keeps {kept}{up_to} of the log"
