"""`python -m lab.bench.mcp`: what an ask over MCP costs the hub beside one over A2A (docs/howto/bench.md)."""

import argparse
import http.client
import json
import os
from collections.abc import Mapping
from statistics import median
from typing import Any

from lab.bench import targets
from lab.bench.cores import LOAD_CORE
from lab.bench.report import goal, table
from lab.bench.targets import QUESTION, Caller, Target

ROUNDS = 5
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


class Asker:
    """Asks one agent in one way over one connection, one ask after the other."""

    def __init__(self, target: Target, way: str) -> None:
        self._target, self._way = target, way
        self._caller = target.callers[0]
        self._connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)
        self._count = 0

    def ask(self, times: int) -> float:
        """Ask so often; the milliseconds of processor time that an ask cost the hub."""
        before = self._target.server.cpu_s()
        for _ in range(times):
            self._ask_once()
        return (self._target.server.cpu_s() - before) / times * 1000

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _ask_once(self) -> None:
        self._count += 1
        path, headers, body = request_of(self._way, self._caller, f"say: {QUESTION}{self._way} {self._count}")
        self._connection.request("POST", path, json.dumps(body), headers)
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200 or ENDS[self._way] not in text:
            raise RuntimeError(f"{self._way}: {response.status} {text[:300]!r}")


def request_of(way: str, caller: Caller, text: str) -> tuple[str, dict[str, str], dict[str, Any]]:
    """The path, headers and body of one ask. Each text is new: the hub joins identical open questions."""
    headers = dict(line.split(": ", 1) for line in caller.headers.splitlines())
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if way == A2A:
        message = {"messageId": text[-60:], "role": "ROLE_USER", "parts": [{"text": text}]}
        call = {"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {"message": message}}
        return caller.path, headers, call
    version = way.removeprefix("MCP ")
    headers |= {"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "ask_agent"}
    handle = caller.path.rpartition("/agents/")[2]
    params: dict[str, Any] = {"name": "ask_agent", "arguments": {"handle": handle, "message": text}}
    if way == MCP_2026:
        params["_meta"] = CLIENT
    return "/mcp", headers, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def measure(target: Target, rounds: int, asks: int) -> dict[str, list[float]]:
    """Milliseconds of processor time per ask, by way, each round for itself: the ways take turns."""
    askers = {way: Asker(target, way) for way in WAYS}
    for asker in askers.values():
        asker.ask(WARM_UP)
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, asker in askers.items():
            took[way].append(asker.ask(asks))
    for asker in askers.values():
        asker.close()
    return took


def text(measured: Mapping[str, Mapping[str, list[float]]]) -> str:
    """The figures, and whether MCP adds as little as wanted, within one round each."""
    rows, goals = [], []
    for home, took in measured.items():
        for way, times in took.items():
            added = median(mine - base for mine, base in zip(times, took[A2A], strict=True))
            rows.append([f"{home}, {way}", f"{median(times):.2f}", "" if way == A2A else f"{added:.2f}"])
            if way != A2A:
                goals.append(goal(f"{home}, {way}: ms that it adds to an ask", "under", ADDED_GOAL_MS, added))
    figures = table(["processor time", "ms an ask", "more than A2A"], rows)
    return figures + "\n\nGoals\n" + table(["goal", "wanted", "measured", ""], goals)


def main() -> None:
    """Ask each home in each way, in turns; print a table and the goal."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.mcp", description=main.__doc__)
    parser.add_argument("--homes", default=",".join(targets.HOMES))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--asks", type=int, default=ASKS, help=f"of each way in a round (default {ASKS})")
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    measured: dict[str, dict[str, list[float]]] = {}
    with targets.temporary_folder() as folder:
        for home in options.homes.split(","):
            with targets.hub(f"{home} 1.0", folder, users=1) as target:
                measured[home] = measure(target, options.rounds, options.asks)
    print(f"An ask over MCP beside A2A, one connection, medians of {options.rounds} rounds\n")
    print(text(measured))


if __name__ == "__main__":
    main()
