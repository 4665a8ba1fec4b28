"""The list of components in `make dist`: it has the form of CycloneDX, and names what a hub is made of."""

import json
from typing import Any

import pytest
from cyclonedx.validation.json import JsonStrictValidator

from clawbridge import VERSION
from clawbridge.connect import packing
from deploy import components
from deploy.packages import REQUIREMENTS, read_licences, read_lock
from lab import ROOT
from lab.hub_storage import hub_env
from lab.processes import python, run

Json = dict[str, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file as `make dist` writes it."""
    folder = tmp_path_factory.mktemp("dist")
    run(python("-m", "deploy.components", str(folder)), hub_env({"PYTHONHASHSEED": "1"}), folder=ROOT)
    [file] = folder.iterdir()
    assert file.name == f"clawbridge-hub-{VERSION}.cdx.json"
    return file.read_bytes()


@pytest.fixture(scope="module")
def by_url(written: bytes) -> dict[str, Json]:
    return {one["purl"]: one for one in json.loads(written)["components"]}


def licence(component: Json) -> str:
    [one] = component["licenses"]
    return str(one["expression"] if "expression" in one else one["license"]["id"])


def test_it_validates_against_the_schema(written: bytes) -> None:
    validator = JsonStrictValidator(components.SCHEMA)
    assert validator.validate_str(written.decode()) is None
    broken = json.loads(written)
    del broken["components"][0]["name"]
    assert validator.validate_str(json.dumps(broken)) is not None


@pytest.mark.parametrize(("lock", "scope"), [("base", "required"), ("stripe", "optional")])
def test_each_locked_package_has_its_hashes_and_its_licence(
    by_url: dict[str, Json], lock: str, scope: str
) -> None:
    required = {package.name for package in read_lock(REQUIREMENTS / "base.txt")}
    licences = read_licences().by_package
    packages = read_lock(REQUIREMENTS / f"{lock}.txt")
    assert packages
    for package in packages:
        component = by_url[f"pkg:pypi/{package.name}@{package.version}"]
        assert {one["content"] for one in component["hashes"]} == set(package.sha256)
        assert licence(component) == licences[package.name]
        assert component["scope"] == ("required" if package.name in required else scope)


def test_it_names_nothing_but_the_locks_and_the_script(by_url: dict[str, Json]) -> None:
    locked = {one for lock in ("base", "stripe") for one in read_lock(REQUIREMENTS / f"{lock}.txt")}
    bundled = {f"pkg:npm/{name}@{version}" for name, version in components.bundled_packages()}
    assert set(by_url) == {f"pkg:pypi/{one.name}@{one.version}" for one in locked} | bundled
    assert len(bundled) == 6
    [script] = [url for url in bundled if by_url[url].get("hashes")]
    assert script.startswith("pkg:npm/markdown-it@")


def test_the_hub_depends_on_every_component(written: bytes, by_url: dict[str, Json]) -> None:
    found = json.loads(written)
    assert found["metadata"]["component"]["version"] == VERSION
    [hub] = [one for one in found["dependencies"] if one["ref"] == found["metadata"]["component"]["bom-ref"]]
    assert set(hub["dependsOn"]) == set(by_url)


def test_equal_sources_make_equal_bytes(written: bytes) -> None:
    assert components.describe() == written


def test_make_dist_writes_it() -> None:
    [recipe] = [part for part in (ROOT / "Makefile").read_text().split("\n\n") if part.startswith("dist:")]
    assert f"-m {components.__name__} dist" in recipe
    assert f"-m {packing.__name__} dist" in recipe
