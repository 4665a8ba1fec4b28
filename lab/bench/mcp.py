"""`python -m lab.bench.mcp`: what an ask over MCP costs the hub beside one over A2A (docs/howto/bench.md)."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from lab.bench import command, hubs
from lab.bench.client import QUESTION, BenchCaller, HttpConnection, connect, message_params, request
from lab.bench.command import HOMES, Option, Options, bench
from lab.bench.hubs import AGENTS_PATH, BenchTarget
from lab.callers import envelope
from lab.figures import BenchResult

ASKS = 300
WARM_UP = 30
ADDED_GOAL_MS = 2.0
A2A, MCP_2025, MCP_2026 = "A2A 1.0", "MCP 2025-11-25", "MCP 2026-07-28"
WAYS = (A2A, MCP_2025, MCP_2026)
ENDS = {A2A: b"TASK_STATE_COMPLETED", MCP_2025: b'"completed"', MCP_2026: b'"completed"'}
ABOUT = "io.modelcontextprotocol/"
CLIENT = {
    f"{ABOUT}protocolVersion": "2026-07-28",
    f"{ABOUT}clientInfo": {"name": "bench", "version": "1"},
    f"{ABOUT}clientCapabilities": {},
}
Times = Mapping[str, list[float]]


def measure(options: Options, folder: Path) -> BenchResult:
    """Ask each hub in each way, in turns over one connection each."""
    measured: dict[str, Times] = {}
    for home in options.homes:
        with hubs.hub(f"{home} 1.0", folder, users=1) as target:
            measured[home] = uvloop.run(_ask_in_turns(target, options.rounds, options.asks))
    return report(measured, options.rounds)


async def _ask_in_turns(target: BenchTarget, rounds: int, asks: int) -> Times:
    """Milliseconds of the hub's processor time for an ask, by way, each round for itself."""
    connections = {way: await connect(target.port) for way in WAYS}
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(-1, rounds):
        for way, connection in connections.items():
            before_s, times = target.server.cpu_s(), WARM_UP if number < 0 else asks
            await _ask(connection, way, target.callers[0], number, times)
            if number >= 0:
                took[way].append((target.server.cpu_s() - before_s) / times * 1000)
    for connection in connections.values():
        connection.close()
    return took


async def _ask(connection: HttpConnection, way: str, caller: BenchCaller, round_number: int, times: int) -> None:
    """Ask so often, one ask after the other. Each text is new: the hub joins identical open questions."""
    for number in range(times):
        path, headers, body = request_of(way, caller, f"say: {QUESTION}{way} {round_number} {number}")
        await connection.ask_ok(request("POST", path, headers, body), part=ENDS[way])


def request_of(way: str, caller: BenchCaller, text: str) -> tuple[str, str, dict[str, Any]]:
    """The path, the header lines and the body of one ask."""
    headers = caller.headers + "Accept: application/json, text/event-stream\r\n"
    if way == A2A:
        return caller.path, headers, envelope("SendMessage", message_params(text[-60:], [{"text": text}]))
    version = way.removeprefix("MCP ")
    headers += f"MCP-Protocol-Version: {version}\r\nMcp-Method: tools/call\r\nMcp-Name: ask_agent\r\n"
    arguments = {"handle": caller.path.removeprefix(AGENTS_PATH), "message": text}
    params: dict[str, Any] = {"name": "ask_agent", "arguments": arguments}
    if way == MCP_2026:
        params["_meta"] = CLIENT
    return "/mcp", headers, envelope("tools/call", params)


def report(measured: Mapping[str, Times], rounds: int) -> BenchResult:
    """The figures, and what MCP adds to an ask within one round each."""
    title = f"An ask over MCP beside A2A, one connection, medians of {rounds} rounds"
    result, rows = BenchResult("mcp", title, runs=[measured]), []
    for home, took in measured.items():
        for way, times in took.items():
            added = median(mine - base for mine, base in zip(times, took[A2A], strict=True))
            rows.append([f"{home}, {way}", f"{median(times):.2f}", "" if way == A2A else f"{added:.2f}"])
            if way != A2A:
                result.goal(f"{home}, {way}: ms that it adds to an ask", "under", ADDED_GOAL_MS, added)
    result.table("Processor time of the hub", ["processor time", "ms an ask", "more than A2A"], rows)
    return result


if __name__ == "__main__":
    asks = Option("--asks", ASKS, "asks of each way in a round")
    bench("mcp", measure, command.homes(*HOMES), command.rounds(5), asks)
