"""For test drivers: every Python process of theirs has a wall clock that is off by a file's number.

Put this folder on PYTHONPATH and the file's path into SPILLWAY_TEST_CLOCK.
"""

import os
import time
from pathlib import Path

from spillway.clock import WallClock

_off_by = Path(os.environ["SPILLWAY_TEST_CLOCK"])
WallClock.now_s = lambda self: time.time() + float(_off_by.read_text())  # type: ignore[method-assign]
