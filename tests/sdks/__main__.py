"""Tries every official client against a running hub: `python -m tests.sdks --url URL --token T --handle HANDLE`.

Asks that agent a few plain questions. With `--channel-token` (of the same login) it also connects an agent of its
own, publishes it while it is at work, and tries what needs one: answers that take longer than five seconds,
cancels, following again, questions back. Prints a table, and below it what went wrong; exit code 1 then.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lab.agents import TaskPeer
from lab.callers import Json, bearer, web
from tests.sdks.clients import CLIENTS, Run, SdkClient
from tests.sdks.environments import ENVIRONMENTS, Missing

LONGER_THAN_A_READ_TIMEOUT_S = 6.5
SLUG = "sdk-check"
NAME_WIDTH = 20
TOO_FAST = re.compile(r"over your rate limit, retry in (\d+) s")
Release = Callable[[Run, TaskPeer], Awaitable[object]]


async def at_once(run: Run, agent: TaskPeer) -> None:
    """Hold nothing back."""


async def after_a_while(run: Run, agent: TaskPeer) -> None:
    await asyncio.sleep(LONGER_THAN_A_READ_TIMEOUT_S)
    agent.release.set()


async def when_followed(run: Run, agent: TaskPeer) -> None:
    await run.saw("again")
    agent.release.set()


@dataclass(frozen=True)
class Check:
    """A scenario, what is asked in it, and the step and state that its last sight should have."""

    name: str
    scenario: str
    text: str = "hello"
    step: str = "answer"
    state: str = "completed"
    only_1: bool = False
    release: Release | None = None

    def fits(self, client: SdkClient, has_agent: bool) -> bool:
        return (client.is_version_1 or not self.only_1) and (has_agent or self.release is None)

    def problem(self, run: Run) -> str:
        """The fault of what was seen; empty without a fault."""
        seen = run.at(self.step)
        if not seen:
            return f"no {self.step}: {run.sights}"
        is_message = self.state == "completed" and seen[-1].kind == "message"
        return "" if not self.state or is_message or seen[-1].state == self.state else f"{seen[-1]}"


CHECKS = [
    Check("card", "card", step="card", state=""),
    Check("send", "send"),
    Check("stream", "stream", step="event"),
    Check("get", "poll", step="task"),
    Check("list", "list_tasks", step="page", state="", only_1=True),
    Check("push", "push", step="left", state="", only_1=True),
    Check("extended", "extended_card", step="card", state="", only_1=True),
    Check("slow send", "send", text="hold | say ferris", release=after_a_while),
    Check("slow stream", "stream", text="hold | say ferris", step="event", release=after_a_while),
    Check("cancel", "cancel", text="note on it | wait", step="canceled", state="canceled", release=at_once),
    Check("follow", "subscribe", text="note on it | hold | say ferris", step="again", release=when_followed),
    Check("ask back", "follow_up", text="ask which?", release=at_once),
]


@dataclass
class Hub:
    """A running hub and whom we are on it."""

    url: str
    token: str


@asynccontextmanager
async def own_agent(hub: Hub, channel_token: str | None) -> AsyncIterator[TaskPeer | None]:
    """An agent of ours, published while the block lasts; None without a token to connect it."""
    if not channel_token:
        yield None
        return
    async with TaskPeer(hub.url, channel_token) as agent, web(hub.url, headers=bearer(hub.token)) as client:
        body = {"sessionId": agent.session_id, "name": SLUG, "slug": SLUG, "status": "published"}
        published = await client.post("/api/v1/agents", json=body)
        published.raise_for_status()
        made: Json = published.json()
        agent.handle = made["handle"]
        try:
            yield agent
        finally:
            await client.delete(f"/api/v1/agents/{made['id']}")


async def try_one(check: Check, client: SdkClient, hub: Hub, handle: str, agent: TaskPeer | None) -> str:
    """Run a check, as often as the hub says we ask too fast; what is wrong, or nothing."""
    while True:
        problem = await try_once(check, client, hub, handle, agent)
        too_fast = TOO_FAST.search(problem)
        if too_fast is None:
            return problem
        await asyncio.sleep(int(too_fast[1]) + 1)


async def try_once(check: Check, client: SdkClient, hub: Hub, handle: str, agent: TaskPeer | None) -> str:
    options = {"text": check.text, "more": "the second", "hook": "https://8.8.8.8/hook"}
    if check.release and agent:
        handle = agent.handle
        agent.release.clear()
    try:
        async with client.run(hub.url, handle, hub.token, check.scenario, **options) as run:
            if check.release and agent:
                await check.release(run, agent)
            return check.problem(await run.end())
    except (AssertionError, TimeoutError) as failure:
        return f"{type(failure).__name__}: {failure}"


async def try_all(hub: Hub, handle: str, channel_token: str | None) -> dict[str, str]:
    """Print the table; what went wrong, by client and check."""
    wrong: dict[str, str] = {}
    print(" " * NAME_WIDTH, *(f"{check.name:11}" for check in CHECKS))
    async with own_agent(hub, channel_token) as agent:
        for client in CLIENTS:
            try:
                ENVIRONMENTS[client.environment].ready()
            except Missing as missing:
                print(f"{client!s:{NAME_WIDTH}}", f"left out: {missing}")
                continue
            print(f"{client!s:{NAME_WIDTH}}", end="", flush=True)
            for check in CHECKS:
                cell = "-"
                if check.fits(client, agent is not None):
                    problem = await try_one(check, client, hub, handle, agent)
                    wrong |= {f"{client}, {check.name}": problem} if problem else {}
                    cell = "FAILED" if problem else "ok"
                print(f" {cell:11}", end="", flush=True)
            print()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sdks", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("--url", required=True, help="the hub's address, http://127.0.0.1:8787")
    parser.add_argument("--token", required=True, help="a session or app token: who asks")
    parser.add_argument("--handle", required=True, help="a published agent that answers plain text")
    parser.add_argument("--channel-token", help="of the same login: connect an agent of our own too")
    given = parser.parse_args()
    hub = Hub(given.url.rstrip("/"), given.token)
    wrong = asyncio.run(try_all(hub, given.handle.removeprefix("@"), given.channel_token))
    for what, problem in wrong.items():
        print(f"\n{what}:\n  {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
