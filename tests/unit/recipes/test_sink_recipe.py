"""The recipe for a sink, followed to the letter: one file, one line."""

import pytest
from project_copy import ProjectCopy, blocks_of

KNOWN = """
from pathlib import Path
from types import SimpleNamespace as Fake

from spillway.check.flow_file import load_flow
from spillway.check.schema import flow_schema
from spillway.errors import SpillwayError
from spillway.sinks import catalog

FLOW = '''
streams: {s: {source: synthetic}}
classes: {default: {delay: 2s}}
queries: {q: {sql: SELECT * FROM s, sink: {type: lines, file: out.jsonl}}}
'''

def flow(text):
    Path("flow.yaml").write_text(text)
    return load_flow(Path("flow.yaml"))

def refused(text):
    try:
        flow(text)
    except SpillwayError as error:
        print(error)

good = flow(FLOW)
catalog.require_ready(good)
write = catalog.aimed(Fake(foreachBatch=lambda write: write), "q", good.queries["q"].sink)
write(Fake(toJSON=lambda: Fake(collect=lambda: ['{"a": 1}'])), 0)
print(Path("out.jsonl").read_text().strip())
refused(FLOW.replace(", file: out.jsonl", ""))
refused(FLOW.replace("file:", "fil:"))
sinks = flow_schema()["$defs"]["Sink"]["oneOf"]
print([s["required"] for s in sinks if s["properties"]["type"]["const"] == "lines"])
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> ProjectCopy:
    copy = ProjectCopy.at(tmp_path_factory.mktemp("project"))
    file, line = blocks_of("A sink")
    copy.write("src/spillway/sinks/lines.py", file)
    copy.insert("src/spillway/sinks/catalog.py", line, after="MODULES: ")
    return copy


def test_parser_known_names_flow_and_schema_know_the_sink(project: ProjectCopy) -> None:
    written, missing, slip, required = project.run("-c", KNOWN).splitlines()
    assert written == '{"a": 1}'
    assert missing == "flow.yaml:4: queries.q.sink.file is missing: it is the file to append to"
    assert "queries.q.sink.fil is not known to sink 'lines': did you mean 'file'?" in slip
    assert required == "[['type', 'file']]"


def test_the_page_about_flows_gets_its_tables(project: ProjectCopy) -> None:
    assert "flow.md rewritten" in project.run("-m", "spillway.check.pages", "docs")
    page = (project.root / "docs" / "flow.md").read_text()
    assert (
        "| `lines` | Appends each row as a line of JSON to a file on the driver's disk. |" in page
    )
    assert "| `file` | text | required | the file to append to |" in page
