"""A driver of its own for tests that kill it: a gate and a file sink, until told to stop."""

import json
import sys
import time
from pathlib import Path

from gates import Place, gate, to_files

from spillway.hosts.spark.session.session import open_session


def main(root: Path, options: dict[str, str]) -> None:
    spark = open_session("local[2,4]", {"spark.driver.memory": "1g"}, name="spillway kill test")
    place = Place(root=root)
    query = to_files(gate(spark, place, **options), place)
    while not (root / "stop").exists():
        query.awaitTermination(1)
        if not query.isActive:
            sys.exit(3)
        time.sleep(0.05)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
