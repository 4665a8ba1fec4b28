"""`manage.py check --deploy` says what would hurt, by ids that stay, each with a hint and its line."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.utils import timezone

from agents.models import Process
from hub.checks import filesystem_of
from hub.models import JobRun
from lab import ROOT
from lab.hub_storage import MakeStorage, run_command

ID = re.compile(r"clawbridge\.[EW]\d{3}")
GOOD = {
    "PUBLIC_URL": "https://hub.example",
    "IS_HTTPS": True,
    "DEV_LOGIN": False,
    "TRUSTED_PROXIES": ("127.0.0.1",),
    "ALLOWED_HOSTS": ["hub.example"],
    "METRICS_TOKEN": "",
}


def found() -> set[str]:
    """The ids that the settings of the moment give; whatever is found says what to do."""
    messages = run_checks(tags=["clawbridge"], include_deployment_checks=True)
    assert all(one.hint for one in messages)
    return {str(one.id).removeprefix("clawbridge.") for one in messages}


@pytest.fixture
def home(settings: Any, tmp_path: Path, db: None) -> Any:
    """Settings that nothing is wrong with."""
    for name, value in GOOD.items():
        setattr(settings, name, value)
    settings.DATA_DIR = tmp_path
    tmp_path.chmod(0o700)
    return settings


def test_good_settings_give_nothing(home: Any) -> None:
    assert found() == set()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"PUBLIC_URL": "http://hub.example", "IS_HTTPS": False}, {"E001"}),
        ({"PUBLIC_URL": "http://127.0.0.1:8787", "IS_HTTPS": False}, {"W001"}),
        ({"DEV_LOGIN": True}, {"E002"}),
        ({"TEST_TIME_SCALE": 0.25}, {"E009"}),
        ({"TEST_TIME_SCALE": 0.25, "PUBLIC_URL": "http://127.0.0.1:8787", "IS_HTTPS": False}, {"W001"}),
        ({"TRUSTED_PROXIES": ()}, {"W002"}),
        ({"TRUSTED_PROXIES": ("127.0.0.1", "0.0.0.0/0")}, {"E003"}),
        ({"TRUSTED_PROXIES": ("::/0",)}, {"E003"}),
        ({"ALLOWED_HOSTS": ["*"]}, {"E004"}),
        ({"METRICS_TOKEN": "short"}, {"W004"}),
        ({"METRICS_TOKEN": "long-enough-to-be-one"}, set()),
        ({"IS_EMBEDDED": False}, {"W008"}),
        ({"REDIS_URL": "redis://127.0.0.1:9/0"}, {"W009"}),
    ],
    ids=lambda one: " ".join(one),
)
def test_a_setting_that_hurts_is_told(home: Any, changed: dict[str, Any], expected: set[str]) -> None:
    for name, value in changed.items():
        setattr(home, name, value)
    assert found() == expected


def test_a_key_of_this_folder_alone_is_told(home: Any) -> None:
    home.IS_EMBEDDED = False
    (home.DATA_DIR / "secret_key").write_text(home.SECRET_KEY)
    assert "W003" in found()


def test_an_open_folder_is_told(home: Any) -> None:
    home.DATA_DIR.chmod(0o755)
    assert found() == {"W005"}


def test_a_network_filesystem_is_known_by_the_mount_above(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        "40 22 0:50 / /srv/my\\040data rw,relatime shared:2 - nfs4 store:/x rw\n"
        "41 40 8:2 / /srv/my\\040data/local rw - xfs /dev/sdb rw\n"
    )
    assert filesystem_of(Path("/srv/my data/hub"), mounts) == "nfs4"
    assert filesystem_of(Path("/srv/my data/local/hub"), mounts) == "xfs"
    assert filesystem_of(Path("/var/lib"), mounts) == "ext4"
    assert filesystem_of(Path("/var/lib"), tmp_path / "none") == ""


def test_sqlite_on_a_network_filesystem_is_told(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = home.DATA_DIR.parent / "mountinfo"
    mounts.write_text(f"40 22 0:50 / {home.DATA_DIR} rw,relatime - nfs4 store:/x rw\n")
    monkeypatch.setattr("hub.checks.MOUNTS", mounts)
    assert found() == {"E005"}


def test_two_processes_on_sqlite_are_told(home: Any) -> None:
    for name in ("one", "two"):
        Process.objects.create(id=name, host="host", pid=1)
    assert found() == {"E006"}


def test_a_worker_that_stopped_is_told(home: Any) -> None:
    home.IS_EMBEDDED = False
    JobRun.objects.create(name=JobRun.SWEEP, ended_at=timezone.now())
    assert found() == set()
    JobRun.objects.update(ended_at=timezone.now() - timedelta(seconds=61))
    assert found() == {"W008"}


@pytest.mark.slow
@pytest.mark.distributed
def test_what_postgresql_and_redis_would_lose_is_told(make_storage: MakeStorage) -> None:
    home = make_storage("grown")  # its PostgreSQL runs without fsync, its Redis without maxmemory
    env = {**home.env, "PUBLIC_URL": "https://hub.example", "TRUSTED_PROXIES": "127.0.0.1"}
    assert check_deploy(env) == {"E007", "W003", "W008", "W010"}
    away = env | {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none", "SECRET_KEY": "k" * 20 + "0123456789" * 4}
    assert {"W006"} <= check_deploy(away)


def check_deploy(env: dict[str, str]) -> set[str]:
    done = run_command(env, "check", "--deploy")
    assert "Traceback" not in done.stderr, done.stderr
    return {one.removeprefix("clawbridge.") for one in ID.findall(done.stderr)}


def test_every_check_has_its_line_and_no_other_has() -> None:
    described = set(ID.findall((ROOT / "docs" / "reference" / "checks.md").read_text()))
    assert described == set(ID.findall((ROOT / "hub" / "checks.py").read_text()))
