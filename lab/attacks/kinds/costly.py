"""Requests that cost the hub much more than the attacker."""

import asyncio
import json
import random
import socket as sockets
from contextlib import closing

from lab.attacks.attacker import AttackedHub, Attacker
from lab.attacks.kinds.unread import flooding_agent
from lab.bench.client import request

AT_ONCE = 150  # more than the threads of a process
WEBHOOKS = 50
QUESTIONS = 100
SCHEMAS = 14  # each twice in the one before it
EXPRESSION = "(?:" + "|".join(f"[a-z]{{1,40}}x{number}" for number in range(20)) + ")+$"
MARKDOWN = "|a" * 20 + "|\n" + "|-" * 20 + "|\n" + "x\n" * 10_000  # a table of 65,536 cells, most of them empty
WORDS = ("build", "night", "failed", "step", "topic", "compiled", "cache", "old", "clean", "make", "log", "reason")


async def searches(hub: AttackedHub, attacker: Attacker) -> None:
    """searches of threads, agents and the desk by a dozen words"""
    paths = ("/api/v1/threads?q=", "/api/v1/agents?q=", "/api/v1/questions?q=")

    def search(number: int) -> bytes:
        words = "+".join([*random.sample(WORDS, 6), random.choice("abcdefm")])
        return request("GET", paths[number % len(paths)] + words, attacker.headers)

    await attacker.flood(hub, AT_ONCE, search)


async def regular_expressions(hub: AttackedHub, attacker: Attacker) -> None:
    """sets of a hundred saved questions with large regular expressions"""
    one = {"text": "?", "expected": "matches", "expectation": EXPRESSION}
    questions = [one | {"text": f"question {number}"} for number in range(QUESTIONS)]
    async with flooding_agent(hub, attacker) as handle:

        def save(number: int) -> bytes:
            body = {"agent": handle, "name": f"set {number}", "questions": questions}
            return request("POST", "/api/v1/evaluations", attacker.headers, body)

        await attacker.flood(hub, AT_ONCE, save)


async def reply_formats(hub: AttackedHub, attacker: Attacker) -> None:
    """chat completions whose JSON Schema takes long to check"""
    parts = [{"$ref": f"#/$defs/d{number + 1}"} for number in range(SCHEMAS)]
    defs = {f"d{number}": {"anyOf": [part, part]} for number, part in enumerate(parts)} | {f"d{SCHEMAS}": False}
    schema = {"$defs": defs, "$ref": "#/$defs/d0"}
    wanted = {"type": "json_schema", "json_schema": {"name": "slow", "schema": schema}}

    def ask(number: int) -> bytes:
        messages = [{"role": "user", "content": f"question {number}"}]
        body = {"model": f"agent/{hub.handle}", "messages": messages, "response_format": wanted}
        return request("POST", "/v1/chat/completions", attacker.headers, body)

    await attacker.flood(hub, AT_ONCE, ask)


async def markdown(hub: AttackedHub, attacker: Attacker) -> None:
    """pages of a thread whose answers are Markdown that takes long to render"""
    page = request("GET", f"/questions/threads/{attacker.thread}", attacker.cookie)
    await attacker.flood(hub, AT_ONCE, lambda _: page)


async def pages(hub: AttackedHub, attacker: Attacker) -> None:
    """pages, by more requests at once than a process has threads"""
    paths = ("/agents", "/desk", "/questions", "/docs/settings", "/account", "/desk/costs")
    requests = [request("GET", path, attacker.cookie) for path in paths]
    await attacker.flood(hub, AT_ONCE, lambda number: requests[number % len(requests)])


async def slow_cards(hub: AttackedHub, attacker: Attacker) -> None:
    """cards of remote servers that accept a connection and send nothing"""
    with closing(listening()) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/card.json"
        look_up = request("POST", "/api/v1/agents/cards", attacker.headers, {"cardUrl": url})
        await attacker.flood(hub, AT_ONCE, lambda _: look_up)


async def slow_webhooks(hub: AttackedHub, attacker: Attacker) -> None:
    """webhooks whose receivers accept a connection and send nothing"""
    with closing(listening()) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        ids = []
        for _ in range(WEBHOOKS + 1):
            body = {"url": url, "events": ["agent.replied"]}
            response = await attacker.call(hub, "POST", "/api/v1/webhooks", body)
            if response.status == 201:
                ids.append(json.loads(response.body)["id"])
        tests = [request("POST", f"/api/v1/webhooks/{one}/test", attacker.headers) for one in ids]
        await attacker.flood(hub, 8, lambda number: tests[number % len(tests)])
        await asyncio.Event().wait()


def listening() -> sockets.socket:
    """A port whose connections are accepted by the kernel, and never answered."""
    return sockets.create_server(("127.0.0.1", 0), backlog=4_096)
