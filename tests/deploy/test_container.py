"""The image and the composition: what is in them runs, as nobody in particular, and names no registry."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from lab import ROOT
from lab.homes import manage
from tests.deploy.files import DEPLOY, document

LINES = (DEPLOY / "Containerfile").read_text()
LAST = LINES.rpartition("\nFROM ")[2]
COMPOSE = document("compose.yaml")
HUB = ("migrate", "web-1", "web-2", "worker", "beat")
DRAIN_S = 25


def copied() -> list[str]:
    """What the last stage takes from the checkout."""
    sources = [line.split()[1:-1] for line in LAST.splitlines() if line.startswith("COPY ")]
    return [one for line in sources for one in line if not one.startswith(("--", "/"))]


def test_the_image_is_built_in_stages_and_runs_as_nobody_in_particular() -> None:
    assert re.findall(r"^FROM (\S+)", LINES, re.MULTILINE) == ["python:3.11-slim"] * 2
    assert re.search(r"^USER [1-9]\d+:[1-9]\d+$", LAST, re.MULTILINE)
    assert "/livez" in re.findall(r"HEALTHCHECK(?:.*\\\n)*.*", LAST)[0]
    assert "--require-hashes" in LINES
    assert LAST.index("USER ") < LAST.index('CMD ["python", "manage.py"')


def test_nothing_else_reaches_the_build() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert set(copied()) | {"requirements/base.txt"} == set(allowed)


@pytest.mark.slow
def test_what_is_copied_is_enough_to_run(tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, app / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, app / name)
    env = {"DATA_DIR": str(tmp_path / "data"), "PUBLIC_URL": "https://hub.example", "TRUSTED_PROXIES": "127.0.0.1"}
    manage(env, "check", "--deploy", "--fail-level", "WARNING", at=app)
    manage(env, "shell", "-c", "import hub.server, hub.celery", at=app)


def test_compose_runs_every_part_and_waits_for_the_schema() -> None:
    services = COMPOSE["services"]
    assert set(services) == {*HUB, "postgres", "redis", "proxy"}
    for name in ("web-1", "web-2", "worker", "beat"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert services["migrate"]["restart"] == "no"
    assert all("healthcheck" in one for one in services.values())
    assert "volatile-ttl" in services["redis"]["command"]


@pytest.mark.parametrize("name", HUB)
def test_a_hubs_container_has_no_rights_and_time_to_drain(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["stop_grace_period"].removesuffix("s")) >= DRAIN_S + 10
    assert "ports" not in service


def test_only_the_proxy_is_reached_and_it_alone_is_believed() -> None:
    services = COMPOSE["services"]
    assert [name for name, one in services.items() if "ports" in one] == ["proxy"]
    address = services["proxy"]["networks"]["inside"]["ipv4_address"]
    assert services["web-1"]["environment"]["TRUSTED_PROXIES"] == address
    assert COMPOSE["networks"]["inside"]["internal"] is True


def test_no_secret_is_written_down() -> None:
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|SECRET|DATABASE_URL|TOKEN", name):
                assert name.endswith("_FILE") or str(value).startswith("${"), name
    files = [one["file"] for one in COMPOSE["secrets"].values()]
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert all(one.startswith("./secrets/") for one in files)


def test_images_are_named_alone() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = {one["image"] for one in COMPOSE["services"].values()}
    assert images == {f"clawbridge:{version}", "postgres:17", "redis:7", "caddy:2"}
