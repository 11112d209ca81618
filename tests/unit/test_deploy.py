"""What is there for deploying: manifests by Kubernetes' own schemas, the flow by `check`, and that
they fit together. Kinds of operators have no schema in a package: they are looked at by hand."""

import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from spillway.check.flow_file import load_flow

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"
OF_OPERATORS = {"PodMonitor", "SparkApplication"}
SCHEMAS = "1.31"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))


EVERY = {
    f"{path.name}-{one['kind']}": one
    for path in sorted((DEPLOY / "kubernetes").iterdir())
    for one in documents(path.name)
}
OURS = {one["kind"]: one for one in documents("flow.yaml")}
[DRIVER] = OURS["Deployment"]["spec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize("name", [n for n, one in EVERY.items() if one["kind"] not in OF_OPERATORS])
def test_a_manifest_is_right_by_its_schema(name: str) -> None:
    kubernetes_validate.validate(EVERY[name], SCHEMAS, strict=True)


def test_a_wrong_manifest_would_be_found() -> None:
    wrong = {**OURS["Deployment"], "spec": {**OURS["Deployment"]["spec"], "replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, SCHEMAS, strict=True)


def test_what_is_named_is_there() -> None:
    spec = OURS["Deployment"]["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == OURS["ServiceAccount"]["metadata"]["name"]
    mounted = {mount["name"] for mount in DRIVER["volumeMounts"]}
    assert mounted <= {volume["name"] for volume in spec["volumes"]}
    labels = OURS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert OURS["Service"]["spec"]["selector"].items() <= labels.items()
    ports = {port["name"]: port["containerPort"] for port in DRIVER["ports"]}
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert DRIVER[name]["httpGet"]["port"] in ports
    named = {port["targetPort"] for port in OURS["Service"]["spec"]["ports"]}
    assert named <= set(ports)
    listens = DRIVER["args"][DRIVER["args"].index("--listen") + 1]
    assert int(listens.rpartition(":")[2]) == ports["watch"]


def test_metrics_are_scraped_with_a_token_that_may_only_look() -> None:
    [monitor] = documents("pod-monitor.yaml")
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in {port["name"] for port in DRIVER["ports"]}
    key = endpoint["authorization"]["credentials"]
    assert key["name"] == OURS["Secret"]["metadata"]["name"]
    secret = OURS["Secret"]["stringData"][key["key"]]
    assert re.search(rf"^\S+ {secret} read$", OURS["Secret"]["stringData"]["tokens"], re.MULTILINE)
    labels = OURS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_an_application_of_the_operator_has_what_its_kind_asks_for() -> None:
    [given] = documents("spark-application.yaml")
    assert given["apiVersion"] == "sparkoperator.k8s.io/v1beta2"
    spec = given["spec"]
    assert {"type", "mode", "sparkVersion", "image", "mainApplicationFile"} <= set(spec)
    assert {"driver", "executor", "restartPolicy"} <= set(spec)
    assert all(isinstance(value, str) for value in spec["sparkConf"].values())
    assert spec["driver"]["serviceAccount"] == OURS["ServiceAccount"]["metadata"]["name"]


def test_the_flow_in_the_image_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "spillway-flow-1")
    flow = load_flow(DEPLOY / "flow.yaml")
    config, service = flow.spark.config, OURS["Service"]
    assert config["spark.driver.host"] == service["metadata"]["name"]
    ports = {port["port"] for port in service["spec"]["ports"]}
    assert {config["spark.driver.port"], config["spark.driver.blockManager.port"]} == ports


def test_the_image_has_what_pip_would_bring_but_pyspark() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    wanted = [one for one in declared["dependencies"] if not one.startswith("pyspark")]
    wanted += [*extras["kafka"], *extras["watch"]]
    recipe = (DEPLOY / "Dockerfile").read_text()
    assert set(re.findall(r'^ +"([^"]+)"', recipe, re.MULTILINE)) == set(wanted)
