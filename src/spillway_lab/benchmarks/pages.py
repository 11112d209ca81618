"""Open pages, as threads: python -m spillway_lab.benchmarks.pages URL COUNT, until its input ends.

Each asks for what the page asks for: events all the time, the end of the curves every 3 s. One more
thread scrapes once a second.
"""

import os
import sys
import threading
import time
import urllib.request
from collections.abc import Callable

CURVES_S, SCRAPE_S = 3.0, 1.0


def listen(url: str) -> None:
    with urllib.request.urlopen(f"{url}/api/events", timeout=60.0) as events:
        for _ in events:
            pass


def again_and_again(url: str, every_s: float) -> None:
    while True:
        with urllib.request.urlopen(url, timeout=60.0) as answer:
            answer.read()
        time.sleep(every_s)


def begin(act: Callable[..., None], *given: object) -> None:
    threading.Thread(target=act, args=given, daemon=True).start()


def main(url: str, count: int) -> None:
    for _ in range(count):
        begin(listen, url)
        begin(again_and_again, f"{url}/api/history?seconds=300&points=300&last=10", CURVES_S)
        time.sleep(CURVES_S / count)
    begin(again_and_again, f"{url}/metrics", SCRAPE_S)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
