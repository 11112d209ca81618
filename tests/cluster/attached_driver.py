"""An application of somebody's own that attaches to a cluster; told what to do on standard input.

attached_driver.py CLUSTER_FILE FOLDER NAME CLASS SECONDS_A_TUPLE
"""

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

from spillway.api import attach
from spillway.hosts.spark.session.session import open_session

RATE = 600


def main() -> None:
    file, folder, name, class_name, tuple_s = sys.argv[1:]
    spark = open_session("local[2,4]", {}, name=name)
    attached = attach(spark, cluster=file, folder=Path(folder) / "attached", node=name, watch="on")
    frame = (
        spark.readStream.format("spillway")
        .options(source="synthetic", rate=str(RATE), delay="5s", max_batch="3000")
        .option("class", class_name)
        .option("query", "counts")
        .load()
    )

    def work(rows: DataFrame, batch: int) -> None:
        time.sleep(float(tuple_s) * rows.count())

    writer = frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    query = writer.foreachBatch(work).start()
    for line in sys.stdin:
        if line.strip() == "detach":
            attached.detach()
        elif line.strip() == "batches":
            last = query.lastProgress
            print("batches", -1 if last is None else last["batchId"], flush=True)
        elif line.strip() == "target":
            try:
                attached.change("gold.delay", "1s")
            except Exception as error:
                print("refused", error, flush=True)
    query.stop()


main()
