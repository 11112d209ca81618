"""Where the lab's package comes from: `../src`, which is not below this folder.

`force-include` in pyproject.toml would do for the wheel, but it would copy the package into an
editable install as well, and the copy would hide the source.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LabPackage(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"]["../src/spillway_lab"] = "spillway_lab"
            build_data["extra_metadata"]["../LICENSE"] = "licenses/LICENSE"
