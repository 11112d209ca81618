"""`spillway report`: a run as one HTML file, from its journal."""

import json
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

sys.path.append(str(Path(__file__).parents[1] / "watch"))

from virtual import BEGAN_S, VirtualWatch

from spillway.cli.app import app
from spillway.errors import SpillwayError
from spillway.journal.entries import Event

RUNNER = CliRunner()


class Seen(HTMLParser):
    """Whether all that is opened is closed, what is written, and what is asked for elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.elsewhere: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elsewhere += [str(v) for k, v in attrs if k in ("src", "href", "action")]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a burst of the lowest class from second 60 on."""
    watched = VirtualWatch(tmp_path_factory.mktemp("run"))
    watched.advance(110.0)
    hostile = {"query": "fraud", "error": "<script>alert(1)</script>"}
    watched.tell([Event(time_s=BEGAN_S + 100.0, kind="restarted", fields=hostile)])
    watched.journal.close()
    return watched.folder


def seen(path: Path) -> Seen:
    found = Seen()
    found.feed(path.read_text())
    assert found.open == []
    return found


@pytest.fixture(scope="module")
def reported(folder: Path) -> tuple[str, list[str]]:
    """What it prints, and what stands in the file, with all that would have been."""
    done = RUNNER.invoke(app, ["report", str(folder)])
    assert done.exit_code == 0, done.output
    return done.output, seen(folder / "report.html").text


def test_it_says_who_held_its_target_who_shed_and_why(reported: tuple[str, list[str]]) -> None:
    printed, written = reported
    assert "gold (p99 3s) held its target throughout and shed nothing" in printed
    text = " ".join(written)
    assert "bronze (mean 4s) held its target for" in text
    assert "keeps … of …" in text


def test_it_says_what_would_have_been_and_how_like_the_run_that_is(
    reported: tuple[str, list[str]],
) -> None:
    _, written = reported

    def shed(what: str) -> float:
        """In the cell after the one that names the run."""
        return float(written[written.index(what) + 1].removesuffix("%")) / 100.0

    recorded, again = shed("as it was recorded"), shed("as it was set (predictive)")
    assert recorded > 0.2
    assert again == pytest.approx(recorded, abs=0.1)
    assert shed("target bronze mean 2s") > shed("target bronze mean 8s")
    assert shed("load manager none") == 0.0
    assert {f"load manager {law}" for law in ("ctrl", "pid")} <= set(written)
    assert "to be believed to about" in " ".join(written)


def test_it_needs_nothing_else_and_trusts_nothing(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    RUNNER.invoke(app, ["report", str(folder), "--no-what-if", "--out", str(out)])
    found = seen(out)
    assert found.elsewhere == []
    assert "<script>alert(1)</script>" in " ".join(found.text)  # as text
    assert "<script" not in out.read_text()


def test_a_part_of_a_run_is_reported_alone(folder: Path, tmp_path: Path) -> None:
    until = datetime.fromtimestamp(BEGAN_S + 55.0, tz=UTC).isoformat()
    out = str(tmp_path / "r.html")
    words = ["report", str(folder), "--until", until, "--no-what-if", "--json", "--out", out]
    found = json.loads(RUNNER.invoke(app, words).stdout)
    assert {row["verdict"] for row in found["classes"]} == {
        "held its target throughout and shed nothing"
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "yesterday"], "must be a time such as"),
        (["--since", "2099-01-01"], "no decision between these times"),
        (["--no-what-if", "--out", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_line(folder: Path, words: list[str], said: str) -> None:
    done = RUNNER.invoke(app, ["report", str(folder), *words])
    assert isinstance(done.exception, SpillwayError)
    assert said in str(done.exception)


def test_a_folder_without_a_journal_is_said(tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["report", str(tmp_path)])
    assert "there is no journal" in str(done.exception)
