"""The Kubernetes manifests, by the schemas of Kubernetes itself, and beside the Dockerfile."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import wireglot
from proofs.container.dockerfile import parse
from tests.tiers import rows

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
IMAGE = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
VERSIONS = ("1.27", "1.32", "1.37")
"""An old one, one in use, and the newest that has a schema."""


def documents(text: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(text) if each]


FILES = {
    f"{path.parent.name}/{path.name}": documents(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.rglob("*.yaml"))
}
WHOLE = {
    f"{name} {each['kind']}": each
    for name, found in FILES.items()
    for each in found
    if each["kind"] != "Kustomization" and "replicas" not in name  # a patch is no whole document
}
(SET,) = (each for each in WHOLE.values() if each["kind"] == "StatefulSet")
POD = SET["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


@rows("version", VERSIONS)
@rows("document", WHOLE.values(), ids=WHOLE.keys())
def test_every_manifest_is_what_the_schema_says(document, version):
    kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
@pytest.mark.parametrize("folder", ["one", "fleet"])
def test_what_kustomize_makes_of_them_is_too(folder):
    made = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / folder)], capture_output=True, text=True, check=True
    )
    found = documents(made.stdout)
    for each in found:
        kubernetes_validate.validate(each, VERSIONS[-1], strict=True)
    replicas = {each["kind"]: each["spec"].get("replicas") for each in found}
    assert replicas["StatefulSet"] == {"one": 1, "fleet": 2}[folder]
    assert ("PodDisruptionBudget" in replicas) == (folder == "fleet")


def test_it_runs_as_the_images_user_and_may_write_to_one_volume_only():
    assert (POD["securityContext"]["runAsUser"], POD["securityContext"]["runAsGroup"]) == IMAGE.user
    assert POD["securityContext"]["fsGroup"] == IMAGE.user[1]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each["mountPath"] for each in CONTAINER["volumeMounts"] if not each.get("readOnly")]
    assert writable == [str(place) for place in IMAGE.volumes]
    assert POD["automountServiceAccountToken"] is False


def test_the_image_has_the_version_of_the_package():
    assert CONTAINER["image"] == f"wireglot:{wireglot.__version__}"


def test_every_selector_finds_the_pods():
    labels = SET["spec"]["template"]["metadata"]["labels"]
    assert SET["spec"]["selector"]["matchLabels"] == labels
    selectors = {
        "Service": lambda each: each["spec"]["selector"],
        "NetworkPolicy": lambda each: each["spec"]["podSelector"]["matchLabels"],
        "PodDisruptionBudget": lambda each: each["spec"]["selector"]["matchLabels"],
    }
    found = {
        each["kind"]: selectors[each["kind"]](each) for each in WHOLE.values() if each["kind"] in selectors
    }
    assert found == dict.fromkeys(selectors, labels)


def test_streams_are_let_finish():
    assert POD["terminationGracePeriodSeconds"] == 310
