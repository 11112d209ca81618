"""The recipe for a log, followed to the letter: one file, one line, one case."""

import re

import pytest
from project_copy import ROOT, ProjectCopy, blocks_of

KNOWN = """
from spillway.check.flow_file import load_flow
from spillway.check.schema import flow_schema
from spillway.errors import SpillwayError
from spillway.logs.catalog import open_log
from spillway.logs.stream_options import own_options
from pathlib import Path

FLOW = '''
streams: {s: {source: numbers, options: {every: 2s}}}
classes: {default: {delay: 2s}}
queries: {q: {sql: SELECT * FROM s}}
'''

def refused(job):
    try:
        job()
    except SpillwayError as error:
        print(error)

def flow(text):
    Path("flow.yaml").write_text(text)
    return load_flow(Path("flow.yaml"))

print(open_log({"source": "numbers", "every": "500ms"}).extent(3.0)[0].stop)
print(flow(FLOW).streams["s"].source)
refused(lambda: open_log({"source": "numbers", "every": "often"}))
refused(lambda: own_options({"source": "numbers", "evry": "1s"}))
refused(lambda: flow(FLOW.replace("2s}}}", "often}}}")))
rules = flow_schema()["$defs"]["Stream"]["allOf"]
print([r["then"] for r in rules if r["if"]["properties"]["source"]["const"] == "numbers"]
      [0]["properties"]["options"]["properties"]["every"])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectCopy:
    copy = ProjectCopy.at(tmp_path_factory.mktemp("project"))
    file, line, case = blocks_of("A log")
    copy.write("src/spillway/logs/numbers.py", file)
    copy.insert("src/spillway/logs/catalog.py", line, after="MODULES: ")
    copy.insert("tests/contract/log_cases.py", f"{case}\n\n", before="LOCAL: ")
    copy.insert("tests/contract/log_cases.py", "    numbers,\n", after="LOCAL: ")
    return copy


def test_parser_known_names_flow_and_schema_know_the_log(project: ProjectCopy) -> None:
    extent, source, bad_value, slip, bad_flow, schema = project.run("-c", KNOWN).splitlines()
    assert (extent, source) == ("6", "numbers")
    assert bad_value.startswith("option 'every' is 'often': it must be a positive number")
    assert "log 'numbers' (did you mean 'every'?)" in slip
    assert bad_flow.startswith("flow.yaml:2: streams.s.options: option 'every' is 'often'")
    assert "from one number to the next" in schema


def test_the_page_about_logs_gets_its_table(project: ProjectCopy) -> None:
    assert "logs.md rewritten" in project.run("-m", "spillway.check.pages", "docs")
    page = (project.root / "docs" / "logs.md").read_text()
    assert "### `source: numbers`\nThe numbers from 0 on, one every `every` since 1970." in page
    assert "| `every` | a duration | `1s` | from one number to the next |" in page


def test_the_contract_suite_takes_it_up(project: ProjectCopy) -> None:
    suite = ("tests/contract/test_logs.py", "-k", "numbers", "-p", "no:cacheprovider")
    passed = re.search(r"(\d+) passed", project.run("-m", "pytest", "-q", *suite))
    assert passed is not None
    assert int(passed[1]) >= 15


def test_the_recipe_names_files_that_there_are() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for name in re.findall(r"[ `]((?:load|logs|sinks|tests)/[\w/]+\.py)", page):
        assert (ROOT / name).exists() or (ROOT / "src" / "spillway" / name).exists(), name
