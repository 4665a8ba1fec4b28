"""Checks of reply formats take turns by caller, and end with their client."""

import asyncio
import threading

import pytest

from kit.asgi import ClientLeft
from openai_api.surface.formatted import CheckThread

MALLORY, ALICE = 1, 2
MANY = 20


async def stay() -> None:
    """The client is connected."""


async def leave() -> None:
    raise ClientLeft


async def test_a_caller_waits_for_one_check_of_each_other_caller() -> None:
    checks, may_end, done = CheckThread(), threading.Event(), list[int]()

    def check(caller: int) -> None:
        may_end.wait(30)
        done.append(caller)

    flood = [asyncio.create_task(checks.run(MALLORY, stay, check, MALLORY)) for _ in range(MANY)]
    await asyncio.sleep(0)
    alice = asyncio.create_task(checks.run(ALICE, stay, check, ALICE))
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(alice, *flood)
    assert (done.index(ALICE), len(done)) == (1, MANY + 1)


async def test_a_check_whose_client_left_is_not_run() -> None:
    checks, done = CheckThread(), list[int]()
    with pytest.raises(ClientLeft):
        await checks.run(MALLORY, leave, done.append, MALLORY)
    await checks.run(MALLORY, stay, done.append, ALICE)
    assert done == [ALICE]
