"""A cluster as its file names it: its two control logs, its folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spillway.errors import SpillwayError, unknown_name
from spillway.flow.cluster import Cluster
from spillway.flow.flow import Flow
from spillway.flow.references import filled
from spillway.hosts.cluster.control_log import ControlLog
from spillway.hosts.cluster.folder import FolderLog
from spillway.hosts.cluster.kafka import KafkaLog
from spillway.hosts.cluster.launching import command_of
from spillway.hosts.cluster.suitable import require_suitable
from spillway.hosts.cluster.written import require_references
from spillway.redaction import remember

_OURS = ("type", "path", "brokers", "topic")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where everything of a cluster is. The flow is as it is written, with its references."""

    name: str
    file: Path
    flow: Flow
    folder: Path

    @property
    def cluster(self) -> Cluster:
        assert self.flow.cluster is not None
        return self.flow.cluster

    @property
    def logs(self) -> Path:
        """What nodes print."""
        return self.folder / "logs"

    def reports(self) -> ControlLog:
        return self._open("reports")

    def assignments(self) -> ControlLog:
        return self._open("assignments")

    def _open(self, which: str) -> ControlLog:
        given = filled({"cluster": {"control": self.cluster.control}}, self.file.parent)
        given = given["cluster"]["control"]
        if given["type"] == "folder":
            root = given.get("path")
            path = self.folder / "control" if root is None else self.file.parent / str(root)
            return FolderLog(path / which, self.name)
        remember(given)
        settings = {k: str(v) for k, v in given.items() if k not in _OURS}
        topic = f"{given.get('topic', f'spillway-{self.name}')}-{which}"
        brokers = {"bootstrap.servers": str(given["brokers"])}
        return KafkaLog({**settings, **brokers}, topic, self.name)


def place_of(file: Path, flow: Flow) -> Place:
    """Raises for what cannot run on many nodes, before anything starts. `flow` is as written."""
    if flow.cluster is None:
        raise SpillwayError(
            f"{file} has no section cluster: add one, `cluster: {{fewest: 2}}` is enough; or run it"
            " on one node with `spillway run`"
        )
    require_suitable(flow)
    require_references(flow.model_dump(by_alias=True))
    require_control(flow.cluster.control)
    command_of(flow.cluster, file, "node-1")
    root = flow.cluster.folder
    folder = Path(".spillway") / file.stem if root is None else file.parent / root
    return Place(name=file.stem, file=file.absolute(), flow=flow, folder=folder.absolute())


def require_control(given: dict[str, Any]) -> None:
    kind = given.get("type")
    if kind not in ("folder", "kafka"):
        raise SpillwayError(
            f"cluster.control.type: {unknown_name('control log', str(kind), ('folder', 'kafka'))}"
        )
    if kind == "folder" and (extra := set(given) - {"type", "path"}):
        raise SpillwayError(
            f"cluster.control.{min(extra)}: a folder takes the key path and no other"
        )
    if kind == "kafka" and "brokers" not in given:
        raise SpillwayError("cluster.control.brokers is missing: host:port, ...")
