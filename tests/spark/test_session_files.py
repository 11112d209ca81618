"""The session's local file system: Hadoop's, without a process for every file."""

import stat
from pathlib import Path

from pyspark.sql import SparkSession

from spillway.hosts.spark.session.local_files import use_fast_local_files


def test_files_get_the_mode_that_hadoop_asks_for(spark: SparkSession, tmp_path: Path) -> None:
    use_fast_local_files(spark)  # a second time changes nothing
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "file"))
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())
    assert files.getClass().getName() == "SpillwayLocalFiles"
    files.create(path).close()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    files.setPermission(path, jvm.org.apache.hadoop.fs.permission.FsPermission("700"))
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o700
    assert files.getFileStatus(path).getPermission().toString() == "rwx------"
