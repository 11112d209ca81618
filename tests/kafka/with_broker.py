"""Runs a command beside a broker of its own: `python tests/kafka/with_broker.py spillway bench ...`

The command finds the broker in the environment variable SPILLWAY_KAFKA, and the jars of Spark's own
Kafka source, where they can be had, in SPILLWAY_KAFKA_JARS.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from broker import Broker, UnavailableError, spark_source_jars

from spillway_lab.benchmarks.logs import KAFKA_JARS_VARIABLE, KAFKA_VARIABLE


def main(command: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="spillway-broker-") as folder:
        broker = Broker(Path(folder))
        try:
            broker.start()
            environment = {**os.environ, KAFKA_VARIABLE: broker.bootstrap, **_jars()}
            return subprocess.run(command, env=environment, check=False).returncode
        except UnavailableError as error:
            print(f"no broker: {error}", file=sys.stderr)
            return 2
        finally:
            broker.stop()


def _jars() -> dict[str, str]:
    try:
        return {KAFKA_JARS_VARIABLE: ",".join(spark_source_jars())}
    except UnavailableError as error:
        print(f"no jars of Spark's own Kafka source: {error}", file=sys.stderr)
        return {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
