"""The Helm chart: its values and templates for themselves, and what Helm makes of them beside the manifests.

Without `helm` (`go install helm.sh/helm/v3/cmd/helm@latest`) what it renders is not checked.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import wireglot
from tests.container.test_kubernetes import FILES, FOLDER, VERSIONS, WHOLE, documents
from tests.tiers import rows
from tools.release.artifacts import pack_chart

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "wireglot"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
TEMPLATES = {path.name: path.read_text(encoding="utf-8") for path in (CHART / "templates").iterdir()}
HELM = shutil.which("helm") or ""
needs_helm = pytest.mark.skipif(not HELM, reason="needs helm: go install helm.sh/helm/v3/cmd/helm@latest")
_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_OPENS = ("if", "with", "range", "define", "block")


def leaves(values: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Each value by its path. An empty mapping is a value: it is for users to fill."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found |= leaves(value, f"{path}.{name}")
        else:
            found[f"{path}.{name}"] = value
    return found


def used() -> set[str]:
    return {each for text in TEMPLATES.values() for each in re.findall(r"\.Values((?:\.\w+)+)", text)}


def test_every_value_is_used_and_every_used_value_has_a_default():
    declared = leaves(VALUES)
    whole = {path for path in used() if any(leaf.startswith(f"{path}.") for leaf in declared)}  # by toYaml
    assert used() - whole <= declared.keys()
    unused = [
        leaf for leaf in declared if not any(leaf == path or leaf.startswith(f"{path}.") for path in used())
    ]
    assert unused == []


@rows("name", TEMPLATES)
def test_every_template_closes_what_it_opens(name):
    assert "{{" not in _ACTION.sub("", TEMPLATES[name])
    words = [(each.split() or [""])[0] for each in _ACTION.findall(TEMPLATES[name])]
    assert sum(word in _OPENS for word in words) == words.count("end")


def test_every_template_that_is_included_is_defined():
    text = "".join(TEMPLATES.values())
    assert set(re.findall(r'include "([^"]+)"', text)) <= set(re.findall(r'define "([^"]+)"', text))


def test_the_pod_has_the_lines_of_the_manifest():
    """Probes, security and volumes are written twice; names, labels and what is a value here differ."""
    manifest = (FOLDER / "one" / "wireglot.yaml").read_text(encoding="utf-8").partition("\n---\n")[0]
    pod = [line.strip() for line in manifest.partition("  template:")[2].splitlines()]
    template = {line.strip() for line in TEMPLATES["statefulset.yaml"].splitlines()}
    assert [line for line in pod if line and line[0] != "#" and line not in template] == [
        "labels: {app.kubernetes.io/name: wireglot}",
        "terminationGracePeriodSeconds: 310",
        f"image: wireglot:{wireglot.__version__}",
        "envFrom: [{secretRef: {name: wireglot}}]",
        '- {name: WIREGLOT_HOSTS, value: "wireglot,localhost"}',
        "requests: {cpu: 250m, memory: 256Mi}",
        "limits: {memory: 1Gi}",
        "configMap: {name: wireglot, optional: true}",
        "resources: {requests: {storage: 2Gi}}",
    ]
    assert VALUES["terminationGracePeriodSeconds"] == 310
    assert VALUES["resources"] == {
        "requests": {"cpu": "250m", "memory": "256Mi"},
        "limits": {"memory": "1Gi"},
    }
    assert VALUES["persistence"]["size"] == "2Gi"


def test_the_chart_has_the_version_of_the_package():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (wireglot.__version__, wireglot.__version__)


def test_what_is_packed_is_the_chart_and_the_same_each_time(tmp_path):
    first, second = (pack_chart(CHART, tmp_path / name) for name in ("a", "b"))
    assert first.name == f"wireglot-{wireglot.__version__}.tgz"
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as packed:
        names = set(packed.getnames())
    assert {"wireglot/Chart.yaml", "wireglot/values.yaml", "wireglot/templates/statefulset.yaml"} <= names


# With Helm.


def rendered(*options: str, name: str = "wireglot") -> list[dict[str, Any]]:
    done = subprocess.run(
        [HELM, "template", name, str(CHART), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def plain(document: Any) -> Any:
    """Without what Helm puts on everything, and what the manifests leave to the cluster."""
    if isinstance(document, list):
        return [plain(each) for each in document]
    if not isinstance(document, dict):
        return document
    own = ("app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by")
    left_out = (*own, "helm.sh/chart", "imagePullPolicy")
    found = {key: plain(value) for key, value in document.items() if key not in left_out}
    if found.get("kind") in ("Service",) and "spec" in found:
        found["spec"].pop("type", None)
    if found.get("kind") == "NetworkPolicy":
        found["metadata"].pop("labels", None)
    if found.get("kind") == "PodDisruptionBudget":
        found["metadata"].pop("labels", None)
    return found


ALL = {
    "image.repository": "registry.example/wireglot",
    "config": "[providers.demo]",
    "hosts": "{llm.example}",
    "ingress.enabled": "true",
    "ingress.host": "llm.example",
    "ingress.tlsSecretName": "certificate",
    "ingress.className": "nginx",
    "serviceAccount.create": "true",
    "serviceAccount.annotations.role": "reader",
    "persistence.storageClassName": "fast",
    "replicas": "3",
    "podAnnotations.a": "b",
    "nodeSelector.disk": "ssd",
}
SET = [each for key, value in ALL.items() for each in ("--set", f"{key}={value}")]


@needs_helm
def test_helm_finds_nothing_wrong():
    done = subprocess.run([HELM, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_helm
def test_the_defaults_are_the_manifests():
    made = {each["kind"]: plain(each) for each in rendered()}
    assert made == {each["kind"]: plain(each) for each in FILES["one/wireglot.yaml"]}


@needs_helm
def test_several_are_the_fleet_of_the_manifests():
    made = {each["kind"]: plain(each) for each in rendered("--set", "replicas=2")}
    (patch,) = FILES["fleet/replicas.yaml"]
    spec = made["StatefulSet"]["spec"]
    assert spec["replicas"] == patch["spec"]["replicas"]
    spread = patch["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spec["template"]["spec"]["topologySpreadConstraints"] == spread
    assert made["PodDisruptionBudget"] == plain(WHOLE["fleet/disruption.yaml PodDisruptionBudget"])


@needs_helm
@rows("version", VERSIONS)
def test_everything_at_once_is_what_the_schema_says(version):
    for each in rendered(*SET):
        kubernetes_validate.validate(each, version, strict=True)


@needs_helm
def test_all_names_and_selectors_are_of_the_release():
    made = {each["kind"]: each for each in rendered(*SET, name="prod")}
    assert {each["metadata"]["name"] for each in made.values()} == {"prod-wireglot"}
    pod = made["StatefulSet"]["spec"]["template"]
    selector = {"app.kubernetes.io/name": "wireglot", "app.kubernetes.io/instance": "prod"}
    assert pod["metadata"]["labels"] == selector
    assert made["Service"]["spec"]["selector"] == selector
    (container,) = pod["spec"]["containers"]
    assert container["image"] == f"registry.example/wireglot:{wireglot.__version__}"
    hosts = {each["name"]: each.get("value") for each in container["env"]}["WIREGLOT_HOSTS"]
    assert hosts == "prod-wireglot,localhost,llm.example"


@needs_helm
def test_an_ingress_without_a_name_is_refused():
    done = subprocess.run(
        [HELM, "template", "wireglot", str(CHART), "--set", "ingress.enabled=true"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "ingress.host: expected the name that clients call it by" in done.stderr
