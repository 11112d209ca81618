"""Ledgers and checkpoints of a query that has moved, read together."""

import json
from pathlib import Path

from spillway.gate.offsets import Offset, Totals, encode
from spillway.gate.rules import Rule, Stretch
from spillway.gate.sampling import PPM
from spillway.hosts.cluster.node_folder import (
    Given,
    NodeFolder,
    audits_of,
    by_stream,
    checkpoint_of,
    overlap_of,
)


def offset(run: str, seq: int, start: int, stop: int, read: int) -> Offset:
    return Offset(
        gate=f"{run}/readings",
        began_us=1,
        seq=seq,
        planned_us=1,
        stretches=(Stretch(partition=0, start=start, read=start, stop=stop),),
        rule=Rule(keep_ppm=PPM, would_keep_ppm=PPM),
        totals=Totals(offered=read, admitted=read),
    )


def write(shared: Path, run: str, node: str, stops: list[int]) -> None:
    """One batch between two stops each; the last one is in the checkpoint only."""
    pairs = zip([stops[0], *stops], stops, strict=False)
    chain = [offset(run, seq, *pair, pair[1] - stops[0]) for seq, pair in enumerate(pairs)]
    ledger = shared / "nodes" / f"{node}.life" / "ledgers" / f"{run}.readings.e1.jsonl"
    ledger.parent.mkdir(parents=True, exist_ok=True)
    ledger.write_text("".join(json.dumps(encode(each)) + "\n" for each in chain[:-1]))
    name, _, generation = run.partition("@")
    checkpoint = checkpoint_of(shared, name, int(generation or 1))
    for folder, text in (
        ("offsets", f"v1\n{{}}\n{json.dumps(encode(chain[-1]))}"),
        ("commits", ""),
    ):
        (checkpoint / folder).mkdir(parents=True)
        (checkpoint / folder / str(chain[-1].seq)).write_text(text)


def test_each_checkpoint_has_an_audit_of_its_own_and_says_what_was_read_twice(
    tmp_path: Path,
) -> None:
    write(tmp_path, "counts", "a", [0, 100, 250])
    write(tmp_path, "counts@2", "b", [180, 200, 400])
    assert sorted(by_stream(tmp_path)) == [("counts", "readings"), ("counts@2", "readings")]
    for run, admitted in (("counts", 250), ("counts@2", 220)):
        [audit] = audits_of(tmp_path, run, "readings")
        assert audit.exact, audit.problems
        assert audit.totals.admitted == admitted
    assert overlap_of(tmp_path, "counts", "counts@2", "readings") == 250 - 180


def test_whoever_goes_on_with_a_checkpoint_sees_how_it_was_begun(tmp_path: Path) -> None:
    """Another node too; another generation begins anew."""
    one, other = (NodeFolder(root=tmp_path / name, shared=tmp_path) for name in "ab")
    for folder in (one, other):
        folder.given["q"] = Given(name="q", generation=1, epoch=3)
    one.combination("q").parent.mkdir(parents=True)
    one.combination("q").touch()
    assert other.combination("q").exists()
    other.given["q"] = Given(name="q", generation=2, epoch=4)
    assert not other.combination("q").exists()
