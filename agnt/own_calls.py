"""Envelopes that this process writes itself for a caller with an AGNT key, as the tools of MCP do."""

import time
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from agnt.arrivals import Arrival
from agnt.endpoint import MAX_USER_AGENT_CHARS
from agnt.envelope import Heading
from agnt.errors import Json
from agnt.keys import FoundKey, find_key
from agnt.runner import EnvelopeRunner
from agnt.wire import DEFAULT_TTL_MS, NETWORK, build_envelope
from kit.async_db import db_call
from kit.clock import approximate_now


class KeyCaller(Struct, frozen=True):
    """A caller with a live AGNT key. `digest`: of the key (`accounts.authn.digest`)."""

    digest: str
    key: FoundKey
    user_agent: str = ""


class EnvelopeCalls:
    """Runs envelopes without HTTP: they are counted, limited, stored and logged like those that came over it."""

    def __init__(self, runner: EnvelopeRunner) -> None:
        self._runner = runner

    async def find_caller(self, token: str, digest: str, user_agent: str) -> KeyCaller | None:
        """The caller with this key; None: it is not live. No call is counted."""
        key = await db_call(find_key)(token)
        return KeyCaller(digest, key, user_agent[:MAX_USER_AGENT_CHARS]) if key else None

    async def run(
        self, caller: KeyCaller, intent: str, payload: Json, *, sender: str, timestamp: str = "", ttl_ms: int
    ) -> Json:
        """The response envelope to an envelope with these fields. No `timestamp`: now."""
        began = time.monotonic()
        fields = build_envelope(
            sender=sender,
            to=NETWORK,
            intent=intent,
            payload=payload,
            agent_context={},
            ttl_ms=ttl_ms,
            timestamp=timestamp or datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        )
        body = msgspec.json.encode(fields)
        arrival = Arrival(
            digest=caller.digest,
            heading=Heading(),
            began=began,
            deadline=began + DEFAULT_TTL_MS / 1000,
            at=approximate_now(),
            body=body,
            text=body.decode(),
            user_agent=caller.user_agent,
        )
        arrival.read_fields(fields)
        response: Json = msgspec.json.decode((await self._runner.run(arrival)).body)
        return response
