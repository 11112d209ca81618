"""A driver of its own for tests that kill it: a gate and a file sink, until told to stop."""

import json
import os
import sys
import time
from pathlib import Path

from gates import Place, gate, to_files

from spillway.hosts.spark.session.session import open_session

MASTER = "SPILLWAY_TEST_MASTER"
ON_A_CLUSTER = {"spark.executor.memory": "512m", "spark.driver.bindAddress": "127.0.0.1"}
SETTINGS = {"spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1"}


def main(root: Path, options: dict[str, str]) -> None:
    cluster = os.environ.get(MASTER)
    settings = SETTINGS if cluster is None else SETTINGS | ON_A_CLUSTER
    spark = open_session(cluster or "local[2,4]", settings, name="spillway kill test")
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
