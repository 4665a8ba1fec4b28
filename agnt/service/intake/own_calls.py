"""Envelopes that this process writes itself for a caller with an AGNT key, as the tools of MCP do."""

import time
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from agnt.service.intake.arrivals import Arrival
from agnt.service.intake.runner import EnvelopeRunner
from agnt.service.keys import FoundKey, find_key
from clawbridge.agnt.errors import Json
from clawbridge.agnt.fields import NETWORK, build_envelope
from kit.async_db import db_call


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
        """The caller with this key; None: the key is not live. The look-up counts as no call."""
        key = await db_call(find_key)(token)
        return KeyCaller(digest, key, user_agent) if key else None

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
        arrival = Arrival.begin(caller.digest, began, caller.user_agent)
        arrival.body, arrival.text = body, body.decode()
        arrival.read_fields(fields)
        response: Json = msgspec.json.decode((await self._runner.run(arrival)).body)
        return response
