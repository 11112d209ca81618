import sys

from spillway.hosts.spark.session.session import LOCAL_PROFILE, _compatible, is_local, profile

ROCKS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
FILES = "spark.hadoop.fs.file.impl"


def test_a_cluster_is_left_as_it_is() -> None:
    assert profile("spark://host:7077") == {}
    assert not is_local("local-cluster[2,1,1024]")


def test_what_the_user_sets_wins_over_the_profile() -> None:
    found = _compatible(LOCAL_PROFILE, {"spark.sql.shuffle.partitions": "7"})
    assert found["spark.sql.shuffle.partitions"] == "7"
    assert found[FILES] == LOCAL_PROFILE[FILES]


def test_rocksdb_does_without_raw_local_files_unless_the_user_asks_for_both() -> None:
    assert FILES not in _compatible(LOCAL_PROFILE, ROCKS)
    assert _compatible(LOCAL_PROFILE, {**ROCKS, FILES: "mine"})[FILES] == "mine"


def test_large_pages_are_asked_for_only_where_the_jvm_knows_them() -> None:
    asked = "UseTransparentHugePages" in LOCAL_PROFILE["spark.driver.extraJavaOptions"]
    assert asked == (sys.platform == "linux")
