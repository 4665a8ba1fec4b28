"""systemd understands the units, and they leave a hub time to drain and little else to do."""

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from lab import ROOT
from tests.deploy.files import DEPLOY

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
HARD = {
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "PrivateMounts": "yes",
    "DevicePolicy": "closed",
    "MemoryDenyWriteExecute": "yes",
    "CapabilityBoundingSet": "",
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
    "StateDirectoryMode": "0700",
}
INSTALLED = "/opt/clawbridge"
MAX_EXPOSURE = 2.0
DRAIN_S = 25


class Unit(ConfigParser):
    """A unit file. Of an option given twice the last one is seen."""

    def __init__(self, path: Path) -> None:
        super().__init__(strict=False, interpolation=None, delimiters=("=",))
        self.optionxform = str  # type: ignore[method-assign,assignment]
        self.read(path)


@pytest.mark.parametrize("path", UNITS, ids=lambda one: one.stem)
def test_a_unit_is_hardened_and_has_time_to_drain(path: Path) -> None:
    service = Unit(path)["Service"]
    assert {name: service[name] for name in HARD} == HARD
    assert service["User"] == "clawbridge"
    assert int(service["TimeoutStopSec"]) >= DRAIN_S + 10
    assert service["Restart"] == "always"
    assert service["EnvironmentFile"] == "/etc/clawbridge/env"


def test_the_target_wants_every_unit() -> None:
    wanted = Unit(DEPLOY / "systemd" / "clawbridge.target")["Unit"]["Wants"].split()
    assert {one.replace("8787", "").replace("8788", "") for one in wanted} == {path.name for path in UNITS}
    assert len([one for one in wanted if "web@" in one]) == 2


def test_the_secrets_of_the_environment_are_no_part_of_a_unit() -> None:
    for path in UNITS:
        assert "SECRET" not in path.read_text()


needs_systemd_analyze = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


@needs_systemd_analyze
@pytest.mark.parametrize("path", UNITS, ids=lambda one: one.stem)
def test_systemd_rates_a_unit_as_little_exposed(path: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    [exposure] = re.findall(r"Overall exposure level for .*: ([\d.]+)", done.stdout)
    assert float(exposure) < MAX_EXPOSURE


@needs_systemd_analyze
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    for path in (DEPLOY / "systemd").iterdir():
        name = path.name.replace("@.", "@8787.")
        text = path.read_text().replace(f"{INSTALLED}/.venv", sys.prefix)  # wherever this environment lies
        (tmp_path / name).write_text(text.replace(INSTALLED, str(ROOT)))
    (tmp_path / "clawbridge-web@8788.service").write_text((tmp_path / "clawbridge-web@8787.service").read_text())
    files = sorted(map(str, tmp_path.iterdir()))
    command = ["systemd-analyze", "verify", "--man=no", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
