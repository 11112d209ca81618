"""Another user can prepare the temporary folder; what we make there is ours alone."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from spillway.hosts.spark.locks import Lock, this_process
from spillway.journal.files import FileJournal
from spillway.lines import append
from spillway.private import make_private, open_private, require_ours, write_private

ANEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder like /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_and_files_are_made_for_their_user_alone(shared: Path) -> None:
    before = os.umask(0)
    try:
        append(shared / "run" / "ledgers" / "l.jsonl", b"{}")
    finally:
        os.umask(before)
    assert mode_of(shared / "run") == mode_of(shared / "run" / "ledgers") == 0o700
    assert mode_of(shared / "run" / "ledgers" / "l.jsonl") == 0o600


def test_a_folder_that_others_may_write_to_is_refused(shared: Path) -> None:
    theirs = shared / "spillway-1"
    theirs.mkdir()
    theirs.chmod(0o777)
    with pytest.raises(PermissionError, match="another user's, or open to them"):
        make_private(theirs / "deeper")


def test_a_folder_of_another_user_is_refused(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (shared / "spillway-1").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    if (shared / "spillway-1").stat().st_uid == 0:
        pytest.skip("root's own folder is trusted by all")
    with pytest.raises(PermissionError):
        require_ours(shared / "spillway-1")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_that_was_given_away_is_refused(shared: Path) -> None:
    (shared / "spillway-1").mkdir(mode=0o700)
    os.chown(shared / "spillway-1", 4711, 4711)
    with pytest.raises(PermissionError):
        make_private(shared / "spillway-1")
    link = shared / "link"
    link.symlink_to("/etc")
    os.chown(link, 4711, 4711, follow_symlinks=False)
    with pytest.raises(PermissionError):
        make_private(link)


def _journal(path: Path) -> None:
    journal = FileJournal(path)
    journal.event(1.0, "started")
    assert journal.lost_lines == 1
    raise PermissionError


def _lock(path: Path) -> None:
    lock = Lock(path=path, what="it", fix="wait", owner=this_process())
    lock.take()
    assert lock._descriptor is None
    raise PermissionError


@pytest.mark.parametrize(
    "write",
    [
        lambda path: append(path, b"{}"),
        lambda path: os.close(open_private(path, ANEW)),
        _journal,
        _lock,
    ],
    ids=["lines", "open", "journal", "lock"],
)
def test_no_link_leads_to_a_file_of_ours(tmp_path: Path, write: Callable[[Path], None]) -> None:
    ours = tmp_path / "ours"
    ours.write_text("mine")
    (tmp_path / "trap").symlink_to(ours)
    with pytest.raises(PermissionError):
        write(tmp_path / "trap")
    assert ours.read_text() == "mine"


def test_a_file_that_is_written_anew_replaces_a_link(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.write_text("mine")
    (tmp_path / "channel").symlink_to(ours)
    write_private(tmp_path / "channel", "new")
    assert ours.read_text() == "mine"
    assert (tmp_path / "channel").read_text() == "new"
    assert mode_of(tmp_path / "channel") == 0o600
