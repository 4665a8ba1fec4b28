"""The record of AGNT envelopes that asked an agent of the hub; the bridge keeps it, and shows it with the ask."""

import msgspec

from a2a_bridge.service.exchange_log import ExchangeLog
from a2a_bridge.service.exchange_notes import begin_note
from a2a_bridge.wire.recorded_text import HIDDEN
from agnt.service.intake.arrivals import Arrival, EnvelopeAnswer
from kit.asgi import HttpRequest


class AgntExchanges:
    """Records the request and the response of an envelope for the page of its ask.

    `agent_context` is left out: the hub keeps nothing of it but its size.
    """

    def __init__(self, log: ExchangeLog) -> None:
        self._log = log

    def __call__(self, request: HttpRequest, arrival: Arrival, answer: EnvelopeAnswer) -> None:
        """Record an envelope whose answer is about to be sent."""
        asked = arrival.asked
        if asked is None:
            return
        body = _without_context(arrival.body)
        note = begin_note(request, body, len(arrival.body), "AGNT")
        note.chat_id, note.caller_id = asked.chat_id, asked.network.service_user_id
        note.received_at = arrival.at.timestamp()
        note.begin(answer.status, answer.headers)
        note.add(_without_context(answer.body))
        self._log.record(note)


def _without_context(body: bytes) -> bytes:
    """A request or response envelope without what the program said about its agent, which a response repeats."""
    fields = msgspec.json.decode(body)
    if not fields.get("agent_context"):
        return body
    return msgspec.json.encode(fields | {"agent_context": HIDDEN})
