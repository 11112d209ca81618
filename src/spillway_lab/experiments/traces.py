"""Real traces when they are at hand, generated load when they are not."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spillway.workloads import bursts
from spillway.workloads.curves import Seconds
from spillway_lab.workloads.files import replay

BELLCORE = "bcaug89_ts_us.npy"


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Arrival times and where they come from."""

    times_s: Seconds
    origin: str


def shared_folder() -> Path | None:
    """The folder of real traces: SPILLWAY_SHARED, or `shared` next to the checkout."""
    named = os.environ.get("SPILLWAY_SHARED")
    folder = Path(named) if named else Path(__file__).resolve().parents[4] / "shared"
    return folder if folder.is_dir() else None


def web_trace(seed: int, duration_s: float, rate_per_s: float) -> Trace:
    """The papers' web and TCP load (LBL-PKT-4): Bellcore packets, else self-similar load.

    The seed picks the stretch of the Bellcore trace; its time is scaled so that the mean rate
    comes out, which keeps the shape of the bursts.
    """
    folder = shared_folder()
    wanted = int(duration_s * rate_per_s)
    if folder is not None and (folder / "traces" / BELLCORE).is_file():
        packets_s = replay(folder / "traces" / BELLCORE, unit="us")
        if len(packets_s) > wanted:
            first = int(np.random.default_rng(seed).integers(len(packets_s) - wanted))
            stretch = packets_s[first : first + wanted + 1] - packets_s[first]
            times_s = stretch[:-1] * (duration_s / stretch[-1])
            return Trace(times_s=times_s, origin="Bellcore BC-pAug89, time scaled to the mean rate")
    times_s = bursts.web(seed, duration_s, rate_per_s)
    return Trace(times_s=times_s, origin="generated self-similar load (Hurst parameter 0.83)")
