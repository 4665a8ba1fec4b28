"""The first call of the protocol's own page, as it is printed there."""

import asyncio
import json
import subprocess
from typing import Any

from lab.hub_process import HubProcess
from tests.agnt.wire import add_venue, mint, new_login, stamp

PRINTED_AT = "2026-04-12T12:00:00Z"
PRINTED = r"""curl -X POST https://api.agntdot.com/a2a/v1 \
-H "Authorization: Bearer agnt_live_YOUR_KEY" \
-H "Content-Type: application/json" \
-d '{
"protocol": "openclaw/a2a/v1",
"from": "my_agent_001",
"to": "network:agnt",
"intent": "network.ping",
"payload": {},
"ttl_ms": 5000,
"timestamp": "2026-04-12T12:00:00Z"
}'"""


def call(hub: HubProcess, token: str, at: str) -> Any:
    """What the command prints with this hub, key and time."""
    command = PRINTED.replace("https://api.agntdot.com", hub.url).replace("agnt_live_YOUR_KEY", token)
    command = command.replace(PRINTED_AT, at)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=True)
    return json.loads(done.stdout)


async def test_the_printed_call_gets_what_the_page_says(embedded_hub: HubProcess) -> None:
    login = new_login()
    key = mint(embedded_hub, login)
    add_venue(embedded_hub, login, "cafe")
    answer = await asyncio.to_thread(call, embedded_hub, key.token, stamp())
    assert answer["payload"].items() >= {"active_venues": 1, "tier": "pro", "network_version": "1.0"}.items()
    assert (answer["from"], answer["to"], answer["protocol"]) == (
        "network:agnt",
        "my_agent_001",
        "openclaw/a2a/v1",
    )
    late = await asyncio.to_thread(call, embedded_hub, key.token, PRINTED_AT)
    assert late["payload"]["error"]["code"] == "timestamp_expired"
    assert "300 s" in late["payload"]["error"]["message"], late
