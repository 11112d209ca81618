"""What an audit finds wrong with one batch, and with what stands between two that follow."""

from collections.abc import Iterator

from spillway.gate.offsets import Offset, Totals
from spillway.gate.shedders.recount import is_measured


def own_problems(offset: Offset, kept: int) -> Iterator[str]:
    """`kept` is what its rule keeps, as it was counted again."""
    totals, what = offset.totals, f"batch {offset.seq}"
    if totals.pending < 0:
        yield (
            f"{what}: offered {totals.offered} is less than admitted"
            f" {totals.admitted} and shed {totals.shed}"
        )
    if offset.seq == 0 and (totals != Totals() or offset.offered_tuples > 0):
        yield f"{what}: consumes tuples, but a stream begins with an empty batch"
    if offset.heartbeat and offset.offered_tuples > 0:
        yield f"{what}: consumes {offset.offered_tuples} tuples, but a heartbeat has none"
    if not 0 <= kept <= offset.scanned_tuples:
        yield f"{what}: keeps {kept} of {offset.scanned_tuples} tuples that it reads"
    if offset.ends:
        yield from _pending_problems(offset)


def _pending_problems(offset: Offset) -> Iterator[str]:
    """What waits lies between where the batch ends and how far each partition was offered."""
    stops = {stretch.partition: stretch.stop for stretch in offset.stretches}
    behind = [p for p, stop in stops.items() if offset.ends.get(p, -1) < stop]
    if behind:
        yield f"batch {offset.seq}: partition {behind[0]} was consumed beyond what was offered"
        return
    waiting = sum(offset.ends[p] - stop for p, stop in stops.items())
    if waiting != offset.totals.pending:
        yield (
            f"batch {offset.seq}: pending {offset.totals.pending}, but {waiting} tuples lie"
            " between its end and what was offered"
        )


def joint_problems(before: Offset, after: Offset, kept: int) -> Iterator[str]:
    """`after` is the batch that follows `before`, and keeps `kept` by its rule."""
    what = f"batch {after.seq}"
    admitted = after.totals.admitted - before.totals.admitted
    shed = after.totals.shed - before.totals.shed
    if admitted != kept:
        says = "the count in its offset is" if is_measured(after) else "its rule keeps"
        yield f"{what}: admitted {admitted}, but {says} {kept}"
    if shed != after.offered_tuples - kept:
        yield f"{what}: shed {shed}, but its rule sheds {after.offered_tuples - kept}"
    for name in ("offered", "lost"):
        earlier, later = getattr(before.totals, name), getattr(after.totals, name)
        if later < earlier:
            yield f"{what}: {name} falls from {earlier} to {later}"
    lost, unread = after.totals.lost - before.totals.lost, after.unread_tuples
    if lost > unread:
        yield f"{what}: {lost} tuples lost, but it leaves only {unread} unread"
    yield from _partition_problems(before, after)


def _partition_problems(before: Offset, after: Offset) -> Iterator[str]:
    what = f"batch {after.seq}"
    ends = {stretch.partition: stretch.stop for stretch in before.stretches}
    for stretch in after.stretches:
        end = ends.pop(stretch.partition, stretch.start)
        if stretch.start != end:
            yield (
                f"{what}: partition {stretch.partition} starts at {stretch.start},"
                f" but the batch before ended at {end}"
            )
    for partition in ends:
        yield f"{what}: partition {partition} of the batch before is missing"
    for partition, offered in after.ends.items():
        earlier = before.ends.get(partition, offered)
        if offered < earlier:
            yield (
                f"{what}: partition {partition} was offered up to {earlier} before,"
                f" and now only up to {offered}"
            )
