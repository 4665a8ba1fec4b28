"""`python -m lab.bench.abuse`: how much memory an embedded hub takes under abuse (docs/reference/memory.md)."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import uvloop

from lab.bench import hubs
from lab.bench.client import BenchCaller, fetch, message_params, request, request_head
from lab.bench.command import Option, Options, bench, odd_lines, show_progress
from lab.bench.hubs import BenchTarget
from lab.bench.visits import Ends, Visit, ask, cut, visit
from lab.figures import BenchResult

CALLERS = 24
LARGE_CHARS = 300_000
ITEMS = 2_000
GOAL_MIB = 300.0
LOOKS_S = 15.0
REPLY_WAIT_S = "3"  # a dropped stream is never answered, and holds its agent until then
PAGES = ("/", "/agents", "/no-such-page")


@dataclass(frozen=True)
class Look:
    """The hub's resident memory at one moment, and the requests sent until then."""

    at_s: float
    rss_mib: float
    requests: int


async def large_question(port: int, caller: BenchCaller, number: int) -> str:
    """A question of 300 KB, which the agent sends back."""
    params = message_params(f"abuse-{number}", [{"text": "say: " + "x" * LARGE_CHARS}])
    return await ask(port, caller, "SendMessage", params)


async def list_of_data(port: int, caller: BenchCaller, number: int) -> str:
    """A data part of 2,000 objects."""
    items = [{"number": item, "name": f"item {item}", "tags": ["a", "b"]} for item in range(ITEMS)]
    params = message_params(f"abuse-{number}", [{"text": "say: a list"}, {"data": items}])
    return await ask(port, caller, "SendMessage", params)


async def broken_json(port: int, caller: BenchCaller, number: int) -> str:
    """A body that ends in the middle of a string."""
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": "' + b"y" * 10_000
    head = request_head("POST", caller.path, caller.headers, len(body))
    return str((await fetch(port, head.encode() + body)).status)


async def page(port: int, caller: BenchCaller, number: int) -> str:
    """A request for a page, or for an address without a page."""
    return str((await fetch(port, request("GET", PAGES[number % len(PAGES)]))).status)


async def dropped_stream(port: int, caller: BenchCaller, number: int) -> str:
    """A stream whose caller disconnects after the first event."""
    return await cut(port, caller, number)


async def large_stream(port: int, caller: BenchCaller, number: int) -> str:
    """A large question, answered in a stream that is read to its end."""
    params = message_params(f"abuse-{number}", [{"text": "stream: " + "z" * LARGE_CHARS}])
    return await ask(port, caller, "SendStreamingMessage", params)


KINDS: dict[Visit, int] = {
    large_question: 6, list_of_data: 3, broken_json: 3, page: 3, dropped_stream: 3, large_stream: 2
}  # fmt: skip


def measure(options: Options, folder: Path) -> BenchResult:
    """Send large, broken and dropped requests from 24 callers at once; read the hub's memory over time."""
    with hubs.hub("embedded 1.0", folder, REPLY_WAIT_S=REPLY_WAIT_S) as target:
        rest_mib = target.server.rss_kib() / 1024
        looks, ends = uvloop.run(abuse(target, options))
        result = report(rest_mib, looks, ends)
        result.notes += odd_lines(target.server.lines)
    return result


async def abuse(target: BenchTarget, options: Options) -> tuple[list[Look], Ends]:
    """Run the callers until the time is over; read the hub's memory every 15 s."""
    began, looks = time.monotonic(), list[Look]()
    ends: Ends = Counter()
    until = began + options.minutes * 60

    def look() -> None:
        looks.append(Look(time.monotonic() - began, target.server.rss_kib() / 1024, ends.total()))
        show_progress(f"{looks[-1].rss_mib:6.0f} MiB  {looks[-1].requests} requests")

    async def ask_on(number: int) -> None:
        caller = target.callers[number % len(target.callers)]
        while time.monotonic() < until:
            number += CALLERS
            await visit(KINDS, target.port, caller, number, ends)
            await asyncio.sleep(options.pause)

    calling = [asyncio.create_task(ask_on(number)) for number in range(CALLERS)]
    while (now := time.monotonic()) < until:
        look()
        await asyncio.sleep(min(LOOKS_S, until - now))
    await asyncio.gather(*calling)
    look()
    return looks, ends


def report(rest_mib: float, looks: Sequence[Look], ends: Ends) -> BenchResult:
    """Memory at rest, in the last third, and at its peak; how the requests ended."""
    settled = median(look.rss_mib for look in looks[len(looks) * 2 // 3 :])
    result = BenchResult("abuse", f"Embedded hub, {CALLERS} callers at once, {looks[-1].at_s / 60:.0f} minutes")
    figures = [rest_mib, settled, max(look.rss_mib for look in looks)]
    head = ("requests", "at rest MiB", "last third MiB", "peak MiB")
    result.table("Memory", head, [[str(looks[-1].requests), *(f"{figure:.0f}" for figure in figures)]])
    rows = [[f"{kind}: {end}", str(count)] for (kind, end), count in sorted(ends.items())]
    result.table("How the requests ended", ("kind", "requests"), rows)
    result.goal("resident memory in the last third, MiB", "under", GOAL_MIB, settled)
    result.runs = [asdict(look) for look in looks]
    return result


if __name__ == "__main__":
    bench(
        "abuse",
        measure,
        Option("--minutes", 30.0, "how long"),
        Option("--pause", 0.0, "seconds between two requests of a caller"),
    )
