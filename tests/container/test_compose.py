"""The compose files: what the Dockerfile promises is asked for, and the fleet's parts fit together."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import wireglot
from proofs.container.compose import interpolated
from proofs.container.dockerfile import parse
from tests.tiers import rows
from wireglot_core.providers.spec import names, provider

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "deploy" / "fleet"
IMAGE = parse((ROOT / "Dockerfile").read_text(encoding="utf-8"))[-1]
ONE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
MANY: dict[str, Any] = yaml.safe_load((FLEET / "compose.yaml").read_text(encoding="utf-8"))
GATEWAYS = {
    "one machine": ONE["services"]["wireglot"],
    **{name: service for name, service in MANY["services"].items() if name.startswith("wireglot")},
}
gateways = pytest.mark.parametrize("service", GATEWAYS.values(), ids=GATEWAYS.keys())


def test_variables_are_put_in_as_compose_does_it():
    text = "${A}-${B:-two}-${C:?why}"
    assert interpolated(text, {"A": "1", "C": "3"}) == "1-two-3"
    with pytest.raises(ValueError, match="C is not set: why"):
        interpolated(text, {"A": "1"})


@gateways
def test_a_gateway_is_read_only_with_one_volume_and_no_rights(service):
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    (volume,) = service["volumes"]
    assert [volume.partition(":")[2]] == [str(place) for place in IMAGE.volumes]
    assert "tmpfs" not in service


@gateways
def test_streams_are_let_finish(service):
    assert service["stop_grace_period"] == "310s"


@gateways
def test_the_image_has_the_version_of_the_package(service):
    assert service["image"] == f"wireglot:{wireglot.__version__}"


def test_what_speaks_plain_http_listens_to_this_machine_only():
    published = [
        each["ports"] for file in (ONE, MANY) for each in file["services"].values() if "ports" in each
    ]
    assert published == [["127.0.0.1:8484:8484"]] * 2


def test_provider_keys_that_are_passed_on_are_known_to_the_catalog():
    known = {variable for name in names() for variable in provider(name).api_key_env}
    passed = GATEWAYS["one machine"]["environment"]
    assert passed == sorted(passed)
    assert set(passed) <= known


def test_no_two_gateways_share_a_volume():
    named = [
        volume.partition(":")[0]
        for name, each in GATEWAYS.items()
        if name != "one machine"
        for volume in each["volumes"]
    ]
    assert len(named) == len(set(named)) == 2
    assert set(named) < set(MANY["volumes"])


def test_nginx_asks_every_gateway_and_nobody_else():
    text = (FLEET / "nginx.conf").read_text(encoding="utf-8")
    assert set(re.findall(r"server (\S+):8484 ", text)) == set(GATEWAYS) - {"one machine"}
    assert "proxy_buffering off;" in text


def test_a_secret_that_is_not_set_stops_the_fleet_and_the_example_names_it():
    text = (FLEET / "compose.yaml").read_text(encoding="utf-8")
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", text))
    used = set(re.findall(r"\$\{([A-Z_]+)", text))
    example = (FLEET / "env.example").read_text(encoding="utf-8")
    assert set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE)) == used
    assert asked == {"WIREGLOT_SECRET", "WIREGLOT_ADMIN_SECRET", "POSTGRES_PASSWORD", "REDIS_PASSWORD"}
    assert not re.findall(r"^[A-Z_]*(?:SECRET|PASSWORD)=.+", example, re.MULTILINE)


@rows("service", MANY["services"].values(), ids=MANY["services"].keys())
def test_no_image_is_named_by_a_registry_and_every_one_by_a_version(service):
    name, _, tag = service["image"].partition(":")
    assert re.fullmatch(r"[a-z]+", name)
    assert tag not in ("", "latest")


def test_every_key_of_the_catalog_reaches_the_container():
    passed = {each.partition("=")[0] for each in ONE["services"]["wireglot"]["environment"]}
    known = {variable for name in names() for variable in provider(name).api_key_env}
    assert known <= passed
