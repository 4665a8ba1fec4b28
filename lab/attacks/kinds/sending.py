"""Requests that are slow, deep or large."""

import json

from lab.attacks.attacker import AttackedHub, Attacker, upload_request
from lab.bench.client import request_head
from lab.bench.hubs import AGENTS_PATH
from lab.callers import envelope, question
from lab.pictures import png_of

TRICKLING = 200
AT_ONCE = 16
DEPTH = 400_000
ITEMS = 8_000
SIDE = 50_000
MAX_UPLOAD_BYTES = 10_000_000


async def trickled_uploads(hub: AttackedHub, attacker: Attacker) -> None:
    """uploads that come byte by byte"""
    whole = upload_request(attacker.headers, "slow.txt", b"x" * MAX_UPLOAD_BYTES, "text/plain")
    await attacker.trickle(hub, TRICKLING, whole[:2_000])


async def trickled_bodies(hub: AttackedHub, attacker: Attacker) -> None:
    """questions that come byte by byte"""
    head = request_head("POST", AGENTS_PATH + hub.handle, attacker.headers, 1_000_000)
    await attacker.trickle(hub, TRICKLING, head.encode() + b"{")


async def deep_json(hub: AttackedHub, attacker: Attacker) -> None:
    """JSON of 800 KB, 400,000 levels deep, on every wire"""
    deep = "[" * DEPTH + "]" * DEPTH
    paths = (AGENTS_PATH + hub.handle, "/mcp", "/v1/chat/completions", "/api/v1/webhooks", "/a2a/v1")
    accepts = attacker.headers + "Accept: application/json, text/event-stream\r\n"
    requests = [(request_head("POST", path, accepts, len(deep)) + deep).encode() for path in paths]
    await attacker.flood(hub, AT_ONCE, lambda number: requests[number % len(requests)])


async def wide_json(hub: AttackedHub, attacker: Attacker) -> None:
    """questions of 1 MB with 8,000 objects"""
    params = question("a list")
    items = [{"number": item, "name": "x" * 60, "tags": [{}]} for item in range(ITEMS)]
    params["message"]["parts"].append({"data": items})
    body = json.dumps(envelope("SendMessage", params)).encode()
    head = request_head("POST", AGENTS_PATH + hub.handle, attacker.headers + "A2A-Version: 1.0\r\n", len(body))
    await attacker.flood(hub, AT_ONCE, lambda _: head.encode() + body)


async def pictures(hub: AttackedHub, attacker: Attacker) -> None:
    """uploads of pictures of 50,000 by 50,000 pixels"""
    picture = png_of(SIDE, SIDE, bytes(1_000_000))
    sent = upload_request(attacker.headers, "large.png", picture, "image/png")
    await attacker.flood(hub, AT_ONCE, lambda _: sent)
