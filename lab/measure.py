"""`python -m lab.measure`: the size of the code base, the code that a request runs through, and circles of rooms.

Sizes are read from the files that git tracks. The code of a request is counted in a running hub, from
the socket that the request comes in on to the socket that the answer leaves by; the code of a reply from the
socket that its frame comes in on to the settled turn.
"""

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grimp

from lab import ROOT, frames
from lab.bench import gateway
from lab.bench.agents import RawEchoAgent, dial
from lab.bench.calls import Counting, RunCode, ask_over_one, calls_of_ours, code_of, counting
from lab.bench.client import begin_task, connected, fetch_json, message_params, request
from lab.bench.hubs import caller_of
from lab.figures import table
from lab.hub_storage import SQLITE_FILE, storages

PRODUCT = (
    *(
        "a2a_bridge",
        "accounts",
        "agents",
        "agnt",
        "clawbridge",
        "evaluations",
        "gateway",
        "hub",
        "kit",
        "mcp_server",
    ),
    *("openai_api", "operators", "webhooks"),
)
REQUESTS, WARM_UP = 60, 5
MAX_CAP = 20  # asks that an agent takes at once
ARRIVED_WITHIN_S, LOOKS_EVERY_S = 10.0, 0.005
IS_SETTLED = "SELECT 1 FROM agents_turn WHERE chat_id = ? AND outcome IS NOT NULL"


@dataclass(frozen=True)
class MeasuredFigure:
    """A line of the table. `names`: what was counted, where that is a list of things."""

    name: str
    value: int
    names: Sequence[str] = ()


def count_lines(rooms: Sequence[str], root: Path = ROOT) -> tuple[int, int]:
    """The lines and the modules of these folders that git tracks or would track; migrations are left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *rooms],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    paths = {path for path in listed.stdout.split("\0") if path.endswith(".py") and "/migrations/" not in path}
    texts = [(root / path).read_text() for path in paths if (root / path).is_file()]
    return sum(len(text.splitlines()) for text in texts), len(texts)


def find_circles() -> list[str]:
    """The pairs of rooms of one package that import each other, directly or by further rooms of the package."""
    graph = grimp.build_graph(*PRODUCT, cache_dir=None)
    found = []
    for package in PRODUCT:
        rooms = sorted(graph.find_children(package))
        for room in rooms:
            graph.squash_module(room)
        reached = {room: graph.find_modules_directly_imported_by(room) & set(rooms) for room in rooms}
        for between, one in product(rooms, rooms):  # Warshall's closure
            if between in reached[one]:
                reached[one] |= reached[between]
        found += [
            f"{one} and {other}"
            for one, other in combinations(rooms, 2)
            if other in reached[one] and one in reached[other]
        ]
    return found


def static_figures(root: Path = ROOT) -> list[MeasuredFigure]:
    """Sizes, and circles of imports."""
    lines, modules = count_lines(PRODUCT, root)
    circles = find_circles()
    return [
        MeasuredFigure("lines of the product, without migrations", lines),
        MeasuredFigure("modules of the product", modules),
        MeasuredFigure("lines of tests", count_lines(["tests"], root)[0]),
        MeasuredFigure("lines of lab", count_lines(["lab"], root)[0]),
        MeasuredFigure("circles between rooms of a package", len(circles), circles),
    ]


async def _ask(hub: Counting, times: int) -> None:
    await ask_over_one(hub.target.port, hub.target.callers[0], "unary", times)


async def _patch(hub: Counting, times: int) -> None:
    """Change three fields of an agent, again and again."""
    port, token = hub.target.port, hub.target.callers[0].token
    agent = (await fetch_json(port, "GET", "/api/v1/agents?mine=true", token))["items"][0]
    async with connected(port) as connection:
        for number in range(times):
            changes = {"tagline": f"number {number}", "dailyBudgetQueries": 70 + number, "access": "public"}
            headers = f"Authorization: Bearer {token}\r\n"
            await connection.ask_ok(request("PATCH", f"/api/v1/agents/{agent['id']}", headers, changes))


async def _tell(hub: Counting, times: int) -> None:
    """Send messages between two agents of a team, one after the other."""
    port, token = hub.target.port, hub.target.channel_token
    sender, recipient = await gateway.connect(port, token, ["sender", "recipient"])
    sender.prepare("recipient")
    async with asyncio.timeout(times + ARRIVED_WITHIN_S):
        for number in range(times):
            sender.tell()
            while len(recipient.took_ms) <= number:
                await asyncio.sleep(1 / gateway.TOLD_A_SECOND)
    for seat in (sender, recipient):
        seat.leave()


KINDS: Mapping[str, Callable[[Counting, int], Coroutine[Any, Any, None]]] = {
    "an ask": _ask,
    "a PATCH of an agent": _patch,
    "a gateway message": _tell,
}


class HoldingAgent(RawEchoAgent):
    """An agent that keeps its prompts, in place of the agent of its session."""

    def __init__(self, token: str, session_id: str) -> None:
        super().__init__(token, session_id)
        self.held: list[str] = []

    def answer(self, chat_id: str, text: str) -> None:
        self.held.append(chat_id)


async def _code_of_replies(hub: Counting) -> RunCode:
    """The code from a reply's frame at the agent's socket to the settled turn.

    The callers do not wait for their tasks, so the hub writes no response while its calls are counted. The end of
    a turn is looked up in the database, which costs the hub nothing; the next reply comes after it.
    """
    port, (asking, asked) = hub.target.port, hub.hub.users  # the first user asks the agent of the second
    caller, times = caller_of(asking, "1.0"), Counter[tuple[str, str]]()
    agent = await dial(lambda: HoldingAgent(asked["channel_token"], asked["session_id"]), port)
    with closing(sqlite3.connect(Path(hub.hub.env["DATA_DIR"]) / SQLITE_FILE)) as database:

        async def reply_to_all() -> None:
            while agent.held:
                agent.send(frames.reply(chat_id := agent.held.pop(0), "echo"))
                async with asyncio.timeout(ARRIVED_WITHIN_S):
                    while not database.execute(IS_SETTLED, [chat_id]).fetchone():
                        await asyncio.sleep(LOOKS_EVERY_S)

        for number in range(REQUESTS // MAX_CAP + 1):
            for one in range(MAX_CAP):
                await begin_task(port, caller, message_params(f"{number}-{one}", [{"text": f"{number} {one}"}]))
            async with asyncio.timeout(ARRIVED_WITHIN_S):
                while len(agent.held) < MAX_CAP:
                    await asyncio.sleep(LOOKS_EVERY_S)
            counted = calls_of_ours(await hub.count_apart(reply_to_all()))
            times.update(counted if number else {})  # the first replies import modules
    agent.leave()
    return code_of(times, REQUESTS)


def running_figures() -> list[MeasuredFigure]:
    """The modules and functions of ours that a request runs through, in a hub started for it."""
    with (
        TemporaryDirectory(prefix="measure-") as name,
        storages(Path(name), is_distributed=False) as new_storage,
        counting(new_storage(), users=2, GATEWAY="1") as hub,
    ):
        codes = {f"{kind}, from socket to socket": _code_of_requests(hub, work) for kind, work in KINDS.items()}
        codes["a reply, from its frame to the settled turn"] = asyncio.run(_code_of_replies(hub))
    return [
        MeasuredFigure(f"{what} of {kind}", len(names), names)
        for kind, code in codes.items()
        for what, names in (("modules", code.modules), ("functions", code.functions))
    ]


def _code_of_requests(hub: Counting, work: Callable[[Counting, int], Coroutine[Any, Any, None]]) -> RunCode:
    """The code of requests."""
    asyncio.run(work(hub, WARM_UP))  # the first requests import modules
    return code_of(calls_of_ours(asyncio.run(hub.count_apart(work(hub, REQUESTS)))), REQUESTS)


def text(figures: Sequence[MeasuredFigure], *, with_names: bool = False) -> str:
    """The table, and with `with_names` what was counted."""
    rows = [[one.name, f"{one.value:,}"] for one in figures]
    lists = [
        line
        for one in figures
        if with_names and one.names
        for line in ("", one.name, *(f"  {name}" for name in one.names))
    ]
    return "\n".join([table(["figure", "now"], rows), *lists])


def main() -> None:
    """Print the figures of this code base."""
    parser = argparse.ArgumentParser(prog="python -m lab.measure", description=main.__doc__)
    parser.add_argument("--static", action="store_true", help="only the figures that need no running hub")
    parser.add_argument("--names", action="store_true", help="list the modules and functions behind each figure")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    figures = static_figures() + ([] if options.static else running_figures())
    if options.json:
        sys.stdout.write(json.dumps([asdict(one) for one in figures], indent=1) + "\n")
    else:
        sys.stdout.write(text(figures, with_names=options.names) + "\n")


if __name__ == "__main__":
    main()
