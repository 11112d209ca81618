"""What Spark prints stays in a file; what is ours of it reaches the user, once."""

from pathlib import Path

from spillway.hosts.spark.session.output import SparkOutput


def add(output: SparkOutput, *lines: str) -> None:
    with output.path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def test_our_own_lines_are_told_once_and_nothing_else(tmp_path: Path) -> None:
    output = SparkOutput(tmp_path / "spark.log")
    add(output, "Traceback (most recent call last):", "spillway: ledger cannot be written")
    assert output.news() == ["spillway: ledger cannot be written"]
    add(output, "\tat org.apache.spark.Foo", "spillway: ledger cannot be written")
    assert output.news() == []


def test_a_line_is_told_when_it_is_whole(tmp_path: Path) -> None:
    output = SparkOutput(tmp_path / "spark.log")
    output.keep("noise\nspillway: half")
    assert output.news() == []
    output.keep(" and whole\n")
    assert output.news() == ["spillway: half and whole"]


def test_the_file_is_bounded_while_others_append_to_it(tmp_path: Path) -> None:
    output = SparkOutput(tmp_path / "spark.log", largest_bytes=100)
    with output.path.open("a") as jvm:
        jvm.write("x" * 120 + "\n")
        jvm.flush()
        assert output.news() == []
        jvm.write("spillway: later\n")
        jvm.flush()
    assert output.path.read_text() == "spillway: later\n"
    assert output.news() == ["spillway: later"]
    assert (tmp_path / "spark.log.1").stat().st_size == 121


def test_a_line_longer_than_a_look_is_passed_over(tmp_path: Path) -> None:
    output = SparkOutput(tmp_path / "spark.log")
    output.keep("x" * (3 << 20) + "\nspillway: after it\n")
    told = [line for _ in range(5) for line in output.news()]
    assert told == ["spillway: after it"]
