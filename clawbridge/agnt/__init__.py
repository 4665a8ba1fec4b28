"""Client of AGNT: sends envelopes to a network or a venue, and reads those that a venue gets.

    ask = Ask(sender="my_agent", intent="booking.search", payload={"query": "dinner"})
    async with HttpxTransport() as transport:  # clawbridge.agnt.transport, which needs `pip install httpx2`
        client = Client(transport, MemoryBreakers())
        answer = await client.ask(Endpoint("https://hub.example/a2a/v1", key="agnt_live_..."), ask)

Without `transport` it needs Python alone: the connector carries it (docs/adr/0145).
"""

from clawbridge.agnt.answers import Answer, HttpAnswer, NoAnswer, read_response
from clawbridge.agnt.asks import Ask, CallFailed, Endpoint, describe_ask
from clawbridge.agnt.breakers import Breakers, MemoryBreakers
from clawbridge.agnt.client import Client, Transport
from clawbridge.agnt.serving import SeenSignatures, describe_response, find_ask, read_ask

__all__ = [
    "Answer",
    "Ask",
    "Breakers",
    "CallFailed",
    "Client",
    "Endpoint",
    "HttpAnswer",
    "MemoryBreakers",
    "NoAnswer",
    "SeenSignatures",
    "Transport",
    "describe_ask",
    "describe_response",
    "find_ask",
    "read_ask",
    "read_response",
]
