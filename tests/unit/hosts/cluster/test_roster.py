"""What a leader reads of nodes, and when it may call a life over."""

from spillway.coding import to_json
from spillway.hosts.cluster.messages import NODE, NodeOrder, NodeReport
from spillway.hosts.cluster.records import Entries, Placed, Record
from spillway.hosts.cluster.roster import Roster

LEASE_S = 10.0


def entries(*reports: tuple[int, str, str], whole: bool = False, **more: object) -> Entries:
    """(position, node, life) of each."""
    placed = []
    for position, node, life in reports:
        report = NodeReport(
            life=life,
            lease_s=LEASE_S,
            state="running",
            applied=0,
            running={},
            **more,  # type: ignore[arg-type]
        )
        body = to_json(NodeReport, report)
        record = Record(cluster="c", key=NODE + node, epoch=1, writer=life, body=body)
        placed.append(Placed(position=position, record=record))
    return Entries(placed=tuple(placed), next=0, whole=whole)


def read(roster: Roster, found: Entries, at_s: float, *held: str) -> None:
    roster.read(found, at_s, at_s, held)


def test_a_life_is_over_when_nothing_was_heard_of_it_for_lease_and_margin() -> None:
    roster = Roster(LEASE_S)
    read(roster, entries((0, "a", "a1")), 0.0)
    for second in range(1, 12):
        read(roster, entries(), float(second))
        assert roster.over == frozenset()
    read(roster, entries(), 12.0)
    assert roster.over == {"a1"}


def test_a_leader_that_froze_does_not_judge_by_the_time_that_it_did_not_look() -> None:
    """Reports of the meantime may have been overwritten or compacted away."""
    roster = Roster(LEASE_S)
    read(roster, entries((0, "a", "a1")), 0.0)
    read(roster, entries(), 60.0)
    assert roster.over == frozenset()


def test_nor_does_one_that_had_to_begin_from_a_snapshot() -> None:
    roster = Roster(LEASE_S)
    read(roster, entries((0, "a", "a1")), 0.0)
    read(roster, entries(), 9.0)
    read(roster, entries((600, "a", "a2"), whole=True), 11.5, "a1")
    assert roster.over == frozenset()


def test_a_report_counts_that_a_later_one_of_the_same_name_hides() -> None:
    roster = Roster(LEASE_S)
    read(roster, entries((0, "a", "a1")), 0.0)
    read(roster, entries((1, "a", "a1"), (2, "a", "other")), 8.0, "a1")
    read(roster, entries(), 13.0, "a1")
    assert "a1" not in roster.over


def test_what_a_process_says_of_its_earlier_lives_needs_no_waiting() -> None:
    roster = Roster(LEASE_S)
    read(roster, entries((0, "a", "a1")), 0.0, "a1")
    read(roster, entries((1, "a", "a2"), before=("a1",)), 1.0, "a1")
    assert roster.over == {"a1"}


def test_a_life_that_holds_a_query_and_was_never_read_is_over_after_a_lease() -> None:
    roster = Roster(LEASE_S)
    for second in range(12):
        read(roster, entries(), float(second), "lost")
        assert roster.over == frozenset()
    read(roster, entries(), 12.0, "lost")
    assert roster.over == {"lost"}


def test_of_two_processes_the_newer_one_has_the_name_for_good() -> None:
    roster, orders = Roster(LEASE_S), {"a": NodeOrder(life="old")}
    read(roster, entries((0, "a", "old")), 0.0)
    assert list(roster.accepted(orders)) == []
    read(roster, entries((1, "a", "new")), 1.0)
    assert list(roster.accepted(orders)) == [("a", "new")]
    orders = {"a": NodeOrder(life="new")}
    read(roster, entries((2, "a", "old")), 2.0)
    assert list(roster.accepted(orders)) == []
    assert roster.reports["a"].life == "new"
