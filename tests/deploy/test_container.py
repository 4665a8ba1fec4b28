"""The image and the composition: what is in them runs as an unprivileged user and names no registry."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from clawbridge import VERSION
from deploy.stack.__main__ import DEFAULTS
from lab import ROOT, settings_page
from lab.hub_storage import manage
from tests.deploy.files import DEPLOY, Json, document

LINES = (DEPLOY / "Containerfile").read_text()
LAST = LINES.rpartition("\nFROM ")[2]
COMPOSE = document("compose.yaml")
LOCAL = document("compose.local.yaml")
FILES = {"compose.yaml": COMPOSE, "compose.local.yaml": LOCAL}
HOWTO = (ROOT / "docs" / "howto" / "deploy.md").read_text()
SETTINGS = {one.name for one in settings_page.all_declarations()}
HUB = ("migrate", "web-1", "web-2", "worker", "beat")
DRAIN_S = 25


def copied() -> list[str]:
    """The files that the last stage takes from the checkout."""
    sources = [line.split()[1:-1] for line in LAST.splitlines() if line.startswith("COPY ")]
    return [one for line in sources for one in line if not one.startswith(("--", "/"))]


def test_the_image_is_built_in_stages_and_runs_as_an_unprivileged_user() -> None:
    assert re.findall(r"^FROM (\S+)", LINES, re.MULTILINE) == ["python:3.11-slim"] * 2
    assert re.search(r"^USER [1-9]\d+:[1-9]\d+$", LAST, re.MULTILINE)
    assert "/livez" in re.findall(r"HEALTHCHECK(?:.*\\\n)*.*", LAST)[0]
    assert "--require-hashes" in LINES
    assert LAST.index("USER ") < LAST.index('CMD ["python", "manage.py"')


def test_nothing_else_reaches_the_build() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert set(copied()) | {"requirements/base.txt", "requirements/stripe.txt"} == set(allowed)


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


@pytest.mark.parametrize("name", FILES)
def test_no_container_gains_rights(name: str) -> None:
    for service in FILES[name]["services"].values():
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not {"privileged", "cap_add", "user", "pid", "devices"} & set(service)


@pytest.mark.parametrize("name", FILES)
def test_a_hubs_container_writes_to_its_volume_and_to_tmp_alone(name: str) -> None:
    for service in containers(FILES[name]):
        assert (service["read_only"], service["tmpfs"]) == (True, ["/tmp"])
        assert {one.partition(":")[2] for one in service.get("volumes", ())} <= {"/data"}


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
    images = {one["image"] for one in COMPOSE["services"].values()}
    assert images == {f"clawbridge:{VERSION}", "postgres:17", "redis:7", "caddy:2"}


def containers(compose: Json) -> list[Json]:
    return [one for one in compose["services"].values() if one["image"].startswith("clawbridge:")]


@pytest.mark.parametrize("name", FILES)
def test_a_hub_gets_settings_that_exist(name: str) -> None:
    for service in containers(FILES[name]):
        assert {one.removesuffix("_FILE") for one in service["environment"]} <= SETTINGS


@pytest.mark.parametrize("name", FILES)
def test_what_a_service_uses_is_declared(name: str) -> None:
    compose = FILES[name]
    for service in compose["services"].values():
        assert set(service.get("secrets", ())) <= set(compose.get("secrets", {}))
        files = [one for key, one in service.get("environment", {}).items() if key.endswith("_FILE")]
        assert {one.removeprefix("/run/secrets/") for one in files} <= set(service.get("secrets", ()))
        mounted = {one.partition(":")[0] for one in service.get("volumes", ())}
        assert {one for one in mounted if not one.startswith(".")} <= set(compose["volumes"])


def test_every_secret_of_a_deployment_is_a_file() -> None:
    needed = {"DATABASE_URL_FILE", "SECRET_KEY_FILE", "WEBHOOK_KEYS_FILE", "METRICS_TOKEN_FILE"}
    for service in containers(COMPOSE):
        assert needed <= set(service["environment"])


def test_the_how_to_makes_every_secret_and_names_the_host() -> None:
    steps = HOWTO.partition("## With containers")[2].partition("## On Kubernetes")[0]
    assert set(re.findall(r"> secrets/(\w+)$", steps, re.MULTILINE)) == set(COMPOSE["secrets"])
    needed = set(re.findall(r"\$\{(\w+)(?::\?|\})", (DEPLOY / "compose.yaml").read_text()))
    assert needed == set(re.findall(r"echo (\w+)=\S+ > \.env", steps))
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_each_way_to_try_a_hub_switches_the_same_things_on() -> None:
    [recipe] = re.findall(r"^run:.*\n\t@(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    switched_on = dict(re.findall(r"(\w+)=\$\$\{\1:-(\d)\}", recipe))
    assert switched_on == DEFAULTS == {"DEV_LOGIN": "1", "DEMO": "1", "GATEWAY": "1"}
    [hub] = LOCAL["services"].values()
    assert switched_on.items() <= hub["environment"].items()


def test_each_production_configuration_has_a_line_for_the_gateway() -> None:
    assert all(service["environment"]["GATEWAY"] == "${GATEWAY:-0}" for service in containers(COMPOSE))
    for path in ("kubernetes/config.yaml", "helm/values.yaml"):
        lines = (DEPLOY / path).read_text().splitlines()
        assert [line.split("#")[0].split() for line in lines if "GATEWAY" in line] == [["GATEWAY:", '"0"']], path
    assert "`GATEWAY`" in HOWTO


def test_the_hub_to_try_is_reached_from_this_machine_alone() -> None:
    [hub] = LOCAL["services"].values()
    assert hub["ports"] == ["127.0.0.1:${PORT:-8787}:8787"]
    switched_on = dict.fromkeys(("DEV_LOGIN", "DEMO", "GATEWAY"), "1")  # as `make run` does
    assert hub["environment"] == {"PUBLIC_URL": "http://127.0.0.1:${PORT:-8787}"} | switched_on
    assert hub["read_only"] is True
    assert hub["cap_drop"] == ["ALL"]
    assert hub["volumes"] == ["data:/data"]
    assert "secrets" not in LOCAL
    assert "docker compose -f deploy/compose.local.yaml up --build" in HOWTO


def test_the_hub_to_try_starts_with_its_settings(tmp_path: Path) -> None:
    [hub] = LOCAL["services"].values()
    given = {name: value.replace("${PORT:-8787}", "8800") for name, value in hub["environment"].items()}
    of_image = dict(re.findall(r"\b(HOST|PORT)=(\S+)", LAST))
    text = "from django.conf import settings as s; print(s.PUBLIC_URL, s.DEV_LOGIN, s.IS_EMBEDDED)"
    said = manage({**of_image, **given, "DATA_DIR": str(tmp_path)}, "shell", "-c", text)
    assert said.split()[-3:] == ["http://127.0.0.1:8800", "True", "True"]


def has_compose() -> bool:
    command = ["docker", "compose", "version"]
    return (
        bool(shutil.which("docker")) and not subprocess.run(command, capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(not has_compose(), reason="no docker compose")
@pytest.mark.parametrize("name", FILES)
def test_docker_compose_reads_it(name: str) -> None:
    command = ["docker", "compose", "-f", str(DEPLOY / name), "config", "--quiet"]
    env = {"PATH": os.environ["PATH"], "HUB_SITE": "hub.example.org"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
