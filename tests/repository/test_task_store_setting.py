"""Where tasks are kept is said by one setting; a home in which that cannot work does not start."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab import ROOT
from lab.hub_storage import hub_env

GROWN = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none", "REDIS_URL": "redis://127.0.0.1:9/0"}
SHOW = "from django.conf import settings; print(settings.TASK_STORE)"


def setting(folder: Path, **env: str) -> tuple[str, str]:
    """The store that a hub of this environment would take, and what it says when there is none."""
    env = hub_env({"DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "hub.settings"} | env)
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout.strip(), done.stderr


def test_each_home_has_its_own_and_both_may_have_the_journal(tmp_path: Path) -> None:
    assert setting(tmp_path)[0] == "memory"
    assert setting(tmp_path, **GROWN)[0] == "redis"
    assert setting(tmp_path, TASK_STORE="journal")[0] == "journal"
    assert setting(tmp_path, TASK_STORE="Journal", **GROWN)[0] == "journal"


@pytest.mark.parametrize(
    ("store", "home", "said"),
    [
        ("redis", {}, "TASK_STORE=redis needs REDIS_URL"),
        ("memory", GROWN, "TASK_STORE=memory keeps tasks in one process"),
        ("disk", {}, "want one of MEMORY, REDIS, JOURNAL"),
    ],
)
def test_what_cannot_work_stops_the_start(tmp_path: Path, store: str, home: dict[str, str], said: str) -> None:
    shown, why = setting(tmp_path, TASK_STORE=store, **home)
    assert shown == ""
    assert said in why
