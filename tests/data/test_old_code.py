"""The release before runs on the new schema, alone and beside the new one (F16): an upgrade needs no stop."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab import ROOT
from lab.agents import Echo, online
from lab.callers import inbound, reply_text, send
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.releases import check_out

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RELEASE = "ae5309f"  # that of tests/repository/test_migrations.py
ITS_TESTS = "tests/native/test_rest_agents.py"  # in process; asks to its hubs are the other tests here
SCHEMA = ["*/migrations/*.py", "kit/concurrent_index.py", "kit/full_text.py"]  # all that makes it


@pytest.fixture(scope="module")
def old_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release before, in a folder."""
    return check_out(RELEASE, tmp_path_factory.mktemp("old"))


async def test_old_code_serves_on_the_new_schema(
    old_code: Path, make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), code=[old_code], TASK_STORE="journal")
    alice, owner = hub.mint("alice", "session"), hub.mint("owner", "session")
    async with online(hub, Echo) as agent:
        assert reply_text(await send(hub.url, agent.handle, "still here?", alice)) == "echo: still here?"
        log = await inbound(hub.url, agent.agent["id"], owner)
    assert [(row["askerLogin"], row["ok"]) for row in log["recent"]] == [("alice", True)]


@pytest.mark.distributed
async def test_old_and_new_processes_answer_for_each_other(
    old_code: Path, make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("grown"), processes=2, code=[old_code, ROOT])
    alice = hub.mint("alice", "session")
    for at in (0, 1):
        async with online(hub, Echo, at=at) as agent:
            for url in hub.urls:
                assert reply_text(await send(url, agent.handle, "who?", alice)) == "echo: who?"


@pytest.mark.deep
async def test_tests_of_the_old_code_pass_on_the_new_schema(old_code: Path, tmp_path: Path) -> None:
    """The release before, but for its migrations: its own tests make their databases by those of today.

    Deep, because the first test of this module shows each column that an ask, its audit row and a token need.
    """
    old = shutil.copytree(old_code, tmp_path / "old")
    for pattern in SCHEMA:
        for file in ROOT.glob(pattern):
            name = old / file.relative_to(ROOT)
            name.parent.mkdir(parents=True, exist_ok=True)  # an app may be newer than the release
            shutil.copy2(file, name)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not grown", ITS_TESTS]
    done = await asyncio.to_thread(subprocess.run, command, cwd=old, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout, done.stdout
