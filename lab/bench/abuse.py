"""`python -m lab.bench.abuse`: how much memory an embedded hub takes under abuse (docs/reference/memory.md)."""

import argparse
import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from statistics import median

import uvloop

from lab.bench import scale, targets
from lab.bench.relay import post
from lab.bench.scale import Result, say
from lab.bench.soak_asks import call, cut, state_of
from lab.bench.streams import LAST
from lab.bench.targets import Caller, Target

CALLERS = 24
LARGE_CHARS = 300_000
ITEMS = 2_000
GOAL_MIB = 300.0
LOOKS_S = 15.0
WITHIN_S = 30.0
REPLY_WAIT_S = "3"  # a dropped stream is never answered, and holds its agent until then
PAGES = ("/", "/agents", "/no-such-page")

Abuse = Callable[[int, Caller, int], Awaitable[str]]


@dataclass(frozen=True)
class Look:
    """The hub's resident memory at one moment, and the requests sent until then."""

    at_s: float
    rss_mib: float
    requests: int


async def large_question(port: int, caller: Caller, number: int) -> str:
    """A question of 300 KB, which the agent sends back."""
    parts: list[dict[str, object]] = [{"text": "say: " + "x" * LARGE_CHARS}]
    return state_of(await call(port, caller, "SendMessage", _params(number, parts)))


async def list_of_data(port: int, caller: Caller, number: int) -> str:
    """A data part of 2,000 objects."""
    items = [{"number": item, "name": f"item {item}", "tags": ["a", "b"]} for item in range(ITEMS)]
    parts: list[dict[str, object]] = [{"text": "say: a list"}, {"data": items}]
    return state_of(await call(port, caller, "SendMessage", _params(number, parts)))


async def broken_json(port: int, caller: Caller, number: int) -> str:
    """A body that ends in the middle of a string."""
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": "' + b"y" * 10_000
    head = f"POST {caller.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{caller.headers}Content-Type: application/json\r\n"
    return await _exchange(port, f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)


async def page(port: int, caller: Caller, number: int) -> str:
    """A page, or an address that has none."""
    path = PAGES[number % len(PAGES)]
    return await _exchange(port, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())


async def dropped_stream(port: int, caller: Caller, number: int) -> str:
    """A stream whose caller disconnects after the first event."""
    return await cut(port, caller, number)


async def large_stream(port: int, caller: Caller, number: int) -> str:
    """A large question, answered in a stream that is read to its end."""
    reader, writer = await post(
        port, caller, "SendStreamingMessage", _params(number, [{"text": "stream: " + "z" * LARGE_CHARS}])
    )
    try:
        return state_of(await reader.readuntil(LAST))
    finally:
        writer.close()


KINDS: dict[Abuse, int] = {
    large_question: 6, list_of_data: 3, broken_json: 3, page: 3, dropped_stream: 3, large_stream: 2
}  # fmt: skip


def main() -> None:
    """Send large, broken and dropped requests from 24 callers at once; print the hub's memory over time."""
    parser = scale.parser("abuse", main.__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default 30)")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests of a caller (0)")
    options = parser.parse_args()
    with scale.folder() as folder, targets.hub("embedded 1.0", folder, REPLY_WAIT_S=REPLY_WAIT_S) as target:
        rest_mib = target.server.rss_kib() / 1024
        looks, ends = uvloop.run(abuse(target, options))
        lines = [line for line in target.server.lines if not line.startswith("ready ")]
    result = report(rest_mib, looks, ends)
    result.notes += [f"the hub printed: {line}" for line in lines[:10]]
    scale.publish(result, options.results)


async def abuse(target: Target, options: argparse.Namespace) -> tuple[list[Look], Counter[str]]:
    """Run the callers until the time is over; look at the hub's memory every 15 s."""
    began, ends, looks = time.monotonic(), Counter[str](), []
    until = began + options.minutes * 60

    async def ask_on(number: int) -> None:
        caller, sent = target.callers[number % len(target.callers)], 0
        while time.monotonic() < until:
            kind = random.choices(list(KINDS), list(KINDS.values()))[0]
            sent += CALLERS
            try:
                async with asyncio.timeout(WITHIN_S):
                    outcome = await kind(target.port, caller, number + sent)
                ends[f"{kind.__name__}: {outcome}"] += 1
            except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError) as failure:
                ends[f"{kind.__name__}: {type(failure).__name__}"] += 1
            await asyncio.sleep(options.pause)

    calling = [asyncio.create_task(ask_on(number)) for number in range(CALLERS)]
    while (now := time.monotonic()) < until:
        looks.append(Look(now - began, target.server.rss_kib() / 1024, ends.total()))
        say(f"{looks[-1].at_s:6.0f} s  {looks[-1].rss_mib:6.0f} MiB  {looks[-1].requests} requests")
        await asyncio.sleep(min(LOOKS_S, until - now))
    await asyncio.gather(*calling)
    looks.append(Look(time.monotonic() - began, target.server.rss_kib() / 1024, ends.total()))
    return looks, ends


def report(rest_mib: float, looks: list[Look], ends: Counter[str]) -> Result:
    """Memory at rest, in the last third, and at its peak; how the requests ended."""
    settled = median(look.rss_mib for look in looks[len(looks) * 2 // 3 :])
    result = Result("abuse", f"Embedded hub, {CALLERS} callers at once, {looks[-1].at_s / 60:.0f} minutes")
    figures = [rest_mib, settled, max(look.rss_mib for look in looks)]
    head = ("requests", "at rest MiB", "last third MiB", "peak MiB")
    result.tables.append(("Memory", head, [[str(looks[-1].requests), *(f"{figure:.0f}" for figure in figures)]]))
    rows = [[name, str(count)] for name, count in sorted(ends.items())]
    result.tables.append(("How the requests ended", ("kind", "requests"), rows))
    result.goal("resident memory in the last third, MiB", "under", GOAL_MIB, settled)
    result.runs = [asdict(look) for look in looks]
    return result


async def _exchange(port: int, request: bytes) -> str:
    """The HTTP status of the response, which is read to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        status = (await reader.readuntil(b"\r\n")).split()[1].decode()
        while await reader.read(65536):
            pass
        return status
    finally:
        writer.close()


def _params(number: int, parts: list[dict[str, object]]) -> dict[str, object]:
    return {"message": {"messageId": f"abuse-{number}", "role": "ROLE_USER", "parts": parts}}


if __name__ == "__main__":
    main()
