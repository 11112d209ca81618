"""A driver to be killed: gates that look at the data or mark rows for queries, and file sinks."""

import sys
import time
from pathlib import Path

from gates import Place, gate, to_files

from spillway.hosts.spark.session.session import open_session

COLUMNS = "id position, key key(200, 1.1), value double(0, 1)"
LOG = {"source": "synthetic", "rate": "20000", "columns": COLUMNS, "partitions": "2"}
GATES = {
    "utility": {"shedder": "utility", "utility": "value * 2"},
    "strata": {"shedder": "strata", "key": "key"},
    "split": {"split": "shared:1,alerts:1:10,scores:8:1"},
}


def main(root: Path) -> None:
    spark = open_session("local[2,4]", {"spark.driver.memory": "1g"}, name="spillway kill test")
    fixed = {"manager": "fixed", "manager.keep_fraction": "0.4"}
    queries = []
    for name, options in GATES.items():
        place = Place(root=root / name)
        queries.append(to_files(gate(spark, place, **LOG, **fixed, **options), place))
    while not (root / "stop").exists():
        if not all(query.isActive for query in queries):
            sys.exit(3)
        time.sleep(0.05)
    for query in queries:
        query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
