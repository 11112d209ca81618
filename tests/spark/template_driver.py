"""A flow with a template, to be killed: runs until the file `stop` appears in its folder."""

import sys
import time
from pathlib import Path

from spillway.flow.flow import Flow
from spillway.hosts.spark.driver.application import Application
from spillway.hosts.spark.files import Folder
from spillway.hosts.spark.session.session import open_session


def flow_of(root: Path) -> Flow:
    return Flow.model_validate(
        {
            "streams": {
                "ticks": {
                    "source": "synthetic",
                    "options": {"rate": 20_000, "columns": "id position"},
                }
            },
            "classes": {"default": {"delay": "500ms", "manager": "none"}},
            "queries": {
                "q": {
                    "template": "SELECT id FROM ticks WHERE id % 100 = :rest",
                    "instances": [{"rest": 1}, {"rest": 2}],
                    "sink": {"type": "parquet", "path": str(root / "sink")},
                }
            },
        }
    )


def main(root: Path) -> None:
    spark = open_session("local[2,4]", name="template driver")
    application = Application(flow_of(root), spark, Folder(root=root))
    application.start()
    while not (root / "stop").exists():
        application.supervise()
        time.sleep(0.1)
    application.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
