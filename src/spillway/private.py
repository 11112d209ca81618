"""Files and folders that no other user can read, or lead us to by a link.

In a folder that everybody may write to (the temporary one) another user can make what we are about
to make: a folder that we would then trust, or a link to a file of ours that we would overwrite.
Planners and workers import this module: standard library only.
"""

import os
import stat
from contextlib import suppress
from errno import ELOOP
from pathlib import Path

_STICKY_FOR_ALL = stat.S_ISVTX | stat.S_IWOTH  # a folder such as /tmp


def require_ours(folder: Path) -> None:
    """Raise where a part of the path is another user's doing. What is not there yet is fine."""
    for path in (folder, *folder.absolute().parents[:-1]):
        with suppress(FileNotFoundError):
            made = path.lstat()
            if not _is_for_all(path.parent):
                continue
            if made.st_uid not in (0, os.geteuid()) or _is_open_to_others(made):
                raise PermissionError(f"{path} is another user's, or open to them: remove it")


def make_private(folder: Path) -> Path:
    """The folder, made with all that is missing above it for this user alone."""
    require_ours(folder)
    for path in (*reversed(folder.parents), folder):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)
    return folder


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a file that is made for this user alone, and is never behind a link."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != ELOOP:
            raise
        raise PermissionError(f"{path} is a link, and none is followed: give its target") from None


def write_private(path: Path, text: str) -> None:
    """In one step: nobody reads half a file, and what stood there before is not written into."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w") as file:
        file.write(text)
    os.replace(draft, path)


def _is_for_all(folder: Path) -> bool:
    return folder.stat().st_mode & _STICKY_FOR_ALL == _STICKY_FOR_ALL


def _is_open_to_others(made: os.stat_result) -> bool:
    """Not a folder like /tmp itself, in which everybody keeps what is theirs."""
    mode = made.st_mode
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX and not stat.S_ISLNK(mode)
