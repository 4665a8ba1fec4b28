"""`make run-stack` brings the production shape up, tells of what breaks, and takes it down in order."""

import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from lab.callers import reply_text, send
from lab.processes import ProgramError
from lab.waiting import eventually
from tests.deploy.stack import Stack, running_stack

LEAVING = ["web 1", "web 2", "beat", "worker", "PostgreSQL", "Redis"]
pytestmark = [pytest.mark.slow, pytest.mark.distributed, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One for all tests: to bring it up takes eight seconds of processor time. The last test ends it."""
    with running_stack(tmp_path_factory.mktemp("stack")) as running:
        yield running


async def test_both_processes_answer_also_after_they_and_the_database_were_killed(stack: Stack) -> None:
    first, second = stack.urls
    for url in (first, second):
        assert reply_text(await send(url, "demo/echo", "hello", stack.token)) == "hello"
    stack.find(second).kill()
    stack.wait_for("web 2 ended with -9")
    assert reply_text(await send(first, "demo/echo", "hello", stack.token)) == "hello"
    stack.wait_for("web 2 runs again")
    before = len(stack.program.output)
    database, web = stack.find_program("postgres"), stack.find(first)
    web.kill()
    stack.wait_for("starting web 1 again", after=before)
    database.kill()
    stack.wait_for("PostgreSQL runs again", after=before)
    stack.wait_for("web 1 runs again", after=before)
    told = stack.program.output[before:]
    assert told.index("PostgreSQL runs again") < told.index("web 1 runs again")
    await eventually(_answering(second, stack), "the demo agent is back, with a new token")
    await eventually(_answering(first, stack), "the agent answers again by the other process")
    minted = stack.command("mint_token --login you --kind session").split()[-1]
    assert reply_text(await send(first, "demo/echo", "hello", minted)) == "hello"


def _answering(url: str, stack: Stack) -> Callable[[], Awaitable[bool]]:
    async def answers() -> bool:
        return reply_text(await send(url, "demo/echo", "again", stack.tokens[-1])) == "again"

    return answers


def test_it_leaves_in_order_and_leaves_nothing_behind(stack: Stack) -> None:
    before = len(stack.program.output)
    children = psutil.Process(stack.program.pid).children(recursive=True)
    assert stack.leave() == 0
    left = re.findall(r"^(.+) left$", stack.program.output[before:], re.MULTILINE)
    assert [one for one in left if one in LEAVING] == LEAVING
    assert not [one for one in children if one.is_running()]


def test_what_cannot_start_is_told_and_nothing_stays(tmp_path: Path) -> None:
    with (
        pytest.raises(ProgramError, match="go together"),
        running_stack(tmp_path, DATABASE_URL="postgres://x/y"),
    ):
        pass
