"""One setting says where tasks are kept; a hub in which that cannot work does not start."""

import runpy
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from lab import ROOT

GROWN = {"DATABASE_URL": "postgres://nobody@127.0.0.1:9/none", "REDIS_URL": "redis://127.0.0.1:9/0"}


def read_task_store(**env: str) -> str:
    """The store that a hub of this environment would take."""
    with pytest.MonkeyPatch.context() as changed:
        for name in (*GROWN, "TASK_STORE"):
            changed.delenv(name, raising=False)
        for name, value in env.items():
            changed.setenv(name, value)
        return str(runpy.run_path(str(ROOT / "hub" / "environment.py"))["TASK_STORE"])


def test_both_homes_have_the_journal_and_each_may_have_its_own(tmp_path: Path) -> None:
    here = {"DATA_DIR": str(tmp_path)}
    assert read_task_store(**here) == "journal"
    assert read_task_store(**here, **GROWN) == "journal"
    assert read_task_store(**here, TASK_STORE="memory") == "memory"
    assert read_task_store(**here, TASK_STORE="Redis", **GROWN) == "redis"


def test_what_cannot_work_stops_the_start(tmp_path: Path) -> None:
    for store, home, said in [
        ("redis", {}, "TASK_STORE=redis needs REDIS_URL"),
        ("memory", GROWN, "TASK_STORE=memory keeps tasks in one process"),
        ("disk", {}, "want one of MEMORY, REDIS, JOURNAL"),
    ]:
        with pytest.raises(ImproperlyConfigured, match=said):
            read_task_store(DATA_DIR=str(tmp_path), TASK_STORE=store, **home)
