"""`python -m lab.measure`: the size of the code base, and the code that a request runs through.

Sizes are read from the files that git tracks. The code of a request is counted in a running hub, from
the socket that the request comes in on to the socket that the answer leaves by.
"""

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from lab import ROOT
from lab.bench import gateway
from lab.bench.calls import Counting, RunCode, ask_over_one, calls_of_ours, code_of, counting
from lab.bench.client import connected, fetch_json, request
from lab.figures import table
from lab.hub_storage import storages

PRODUCT = (
    *("a2a_bridge", "accounts", "agents", "agnt", "clawbridge", "gateway", "hub", "kit", "mcp_server"),
    *("openai_api", "operators", "webhooks"),
)
REQUESTS, WARM_UP = 60, 5
ARRIVED_WITHIN_S = 10.0


@dataclass(frozen=True)
class Figure:
    """One line of the table. `names`: what was counted, where that is a list of things."""

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


def static_figures(root: Path = ROOT) -> list[Figure]:
    """Sizes."""
    lines, modules = count_lines(PRODUCT, root)
    return [
        Figure("lines of the product, without migrations", lines),
        Figure("modules of the product", modules),
        Figure("lines of tests", count_lines(["tests"], root)[0]),
        Figure("lines of lab", count_lines(["lab"], root)[0]),
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


KINDS: Mapping[str, Callable[[Counting, int], Awaitable[None]]] = {
    "an ask": _ask,
    "a PATCH of an agent": _patch,
    "a gateway message": _tell,
}


def running_figures() -> list[Figure]:
    """The modules and functions of ours that a request runs through, in a hub started for it."""
    with (
        TemporaryDirectory(prefix="measure-") as name,
        storages(Path(name), is_distributed=False) as new_storage,
        counting(new_storage(), users=2, GATEWAY="1") as hub,
    ):
        codes = {kind: _code_of_requests(hub, work) for kind, work in KINDS.items()}
    return [
        Figure(f"{what} of {kind}, from socket to socket", len(names), names)
        for kind, code in codes.items()
        for what, names in (("modules", code.modules), ("functions", code.functions))
    ]


def _code_of_requests(hub: Counting, work: Callable[[Counting, int], Awaitable[None]]) -> RunCode:
    """The code of requests."""
    hub.count(work(hub, WARM_UP))  # the first requests import modules
    return code_of(calls_of_ours(hub.count_apart(work(hub, REQUESTS))), REQUESTS)


def text(figures: Sequence[Figure], *, with_names: bool = False) -> str:
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
