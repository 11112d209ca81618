"""What a session of ours does beside its settings: local files, the Python of its workers."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
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


def test_a_class_that_does_not_compile_leaves_hadoops_own_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    jvm = spark._jvm
    assert jvm is not None
    path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "file"))
    ours = path.getFileSystem(spark._jsc.hadoopConfiguration())
    ours.close()  # as in a new session
    assert not use_fast_local_files(spark, source="this is no Java")
    hadoops = path.getFileSystem(spark._jsc.hadoopConfiguration())
    assert hadoops.getClass().getSimpleName() == "RawLocalFileSystem"
    hadoops.create(path).close()
    assert use_fast_local_files(spark)


def test_workers_import_the_installed_pyspark_and_not_sparks_zip(spark: SparkSession) -> None:
    def where(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark

        yield from (pa.RecordBatch.from_pydict({"file": [pyspark.__file__]}) for _ in rows)

    [[file]] = spark.range(1).mapInArrow(where, "file string").collect()
    assert file == pyspark.__file__
