"""A driver of its own for tests that kill it: a gate and a file sink, until told to stop."""

import sys
import time
from pathlib import Path

from gates import Place, gate, to_files

from spillway.plants.spark.session import open_session


def main(root: Path, rate: str) -> None:
    spark = open_session("local[2,4]", {"spark.driver.memory": "1g"}, name="spillway kill test")
    place = Place(root=root)
    frame = gate(spark, place, rate=rate, delay="400ms", partitions="2")
    query = to_files(frame, place)
    while not (root / "stop").exists():
        query.awaitTermination(1)
        if not query.isActive:
            sys.exit(3)
        time.sleep(0.05)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
