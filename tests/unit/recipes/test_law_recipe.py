"""The recipe for a load manager, followed to the letter: one file, one line."""

from pathlib import Path

import pytest
from project_copy import ProjectCopy, blocks_of

KNOWN = """
from spillway.check.pages import refreshed
from spillway.check.schema import flow_schema
from spillway.flow.flow import ServiceClass
from spillway.gate.options import GateOptions
from pathlib import Path

print(ServiceClass(delay="2s", manager={"law": "half", "share": 0.4}).law)
print(GateOptions.parse({"manager": "half", "manager.share": "0.4"}).law_parameters)
try:
    ServiceClass(delay="2s", manager={"law": "half", "share": 4})
except ValueError as error:
    print(str(error).splitlines()[2])
laws = flow_schema()["$defs"]["ServiceClass"]["properties"]["manager"]["anyOf"]
own = [law["properties"] for law in laws if "share" in law.get("properties", {})]
print([each["share"]["default"] for each in own])
print("### `half`" in refreshed(Path("docs/laws.md").read_text()))
"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectCopy:
    made = ProjectCopy.at(tmp_path)
    file, line = blocks_of("A load manager")
    made.write("src/spillway/load/half.py", file)
    made.insert("src/spillway/load/laws.py", line, before='        "none": Nothing')
    made.insert(
        "src/spillway/load/laws.py",
        "from spillway.load.half import Half\n",
        after="from spillway.load.fixed",
    )
    return made


def test_flow_options_schema_and_page_know_it(project: ProjectCopy) -> None:
    said = project.run("-c", KNOWN)
    assert "('half', {'share': 0.4})" in said
    assert "{'share': 0.4}" in said
    assert "it must be a number above 0 and at most 1" in said
    assert "[0.5]" in said
    assert "True" in said


def test_the_contract_suite_takes_it_up(project: ProjectCopy) -> None:
    suite = "tests/contract/test_load_managers.py"
    said = project.run("-m", "pytest", "-q", "-p", "no:cacheprovider", suite, "-k", "half")
    assert "passed" in said
