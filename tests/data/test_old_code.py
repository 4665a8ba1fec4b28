"""The release before runs on the new schema, alone and beside the new one (F16): an upgrade needs no stop."""

import asyncio
import io
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from lab import ROOT
from lab.agents import Echo, online
from lab.callers import inbound, reply_text, send
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.processes import Program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

RELEASE = "ae5309f"  # that of tests/repository/test_migrations.py
ITS_TESTS = "tests/native/test_rest_agents.py"  # in process; asks to its hubs are the other tests here
SCHEMA = ["*/migrations/*.py", "kit/concurrent_index.py", "kit/full_text.py"]  # all that makes it


class OldHub(HubProcess):
    """Web processes of the release before; those in `is_new` are of today."""

    code: ClassVar[Path]
    is_new: ClassVar[frozenset[int]] = frozenset()

    def web_program(self, index: int) -> Program:
        program = super().web_program(index)
        return program if index in self.is_new else replace(program, folder=self.code, is_forked=False)


class MixedHub(OldHub):
    """The first process is old, the second is of today."""

    is_new = frozenset({1})


@pytest.fixture(scope="module")
def _old_code(tmp_path_factory: pytest.TempPathFactory) -> None:
    archive = subprocess.run(["git", "archive", RELEASE], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the commit {RELEASE} is not in this clone: it is shallow, or no git")
    OldHub.code = tmp_path_factory.mktemp("old")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(OldHub.code, filter="data")


@pytest.mark.usefixtures("_old_code")
async def test_old_code_serves_on_the_new_schema(make_storage: MakeStorage) -> None:
    home = make_storage("embedded")
    hub = OldHub.start(home, TASK_STORE="journal")
    try:
        alice, owner = hub.mint("alice", "session"), hub.mint("owner", "session")
        async with online(hub, Echo) as agent:
            assert reply_text(await send(hub.url, agent.handle, "still here?", alice)) == "echo: still here?"
            log = await inbound(hub.url, agent.agent["id"], owner)
        assert [(row["askerLogin"], row["ok"]) for row in log["recent"]] == [("alice", True)]
    finally:
        hub.stop()


@pytest.mark.distributed
@pytest.mark.usefixtures("_old_code")
async def test_old_and_new_processes_answer_for_each_other(make_storage: MakeStorage) -> None:
    hub = MixedHub.start(make_storage("grown"), processes=2)
    try:
        alice = hub.mint("alice", "session")
        for at in (0, 1):
            async with online(hub, Echo, at=at) as agent:
                for url in hub.urls:
                    assert reply_text(await send(url, agent.handle, "who?", alice)) == "echo: who?"
    finally:
        hub.stop()


@pytest.mark.deep
@pytest.mark.usefixtures("_old_code")
async def test_tests_of_the_old_code_pass_on_the_new_schema(tmp_path: Path) -> None:
    """The release before, but for its migrations: its own tests make their databases by those of today.

    Deep, because the first test of this module shows each column that an ask, its audit row and a token need.
    """
    old = shutil.copytree(OldHub.code, tmp_path / "old")
    for pattern in SCHEMA:
        for file in ROOT.glob(pattern):
            name = old / file.relative_to(ROOT)
            name.parent.mkdir(parents=True, exist_ok=True)  # an app may be newer than the release
            shutil.copy2(file, name)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not grown", ITS_TESTS]
    done = await asyncio.to_thread(subprocess.run, command, cwd=old, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout, done.stdout
