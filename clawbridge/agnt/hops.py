"""Hops: `via`, the signed chain of the agents that passed an envelope on. No I/O.

Each hop signs its name, its time and the signature before it: the first hop that of the payload as it sent it, the
others that of the hop before. A receiver has the key of its sender alone: it verifies the last hop.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from clawbridge.agnt.errors import EnvelopeRefused, ErrorCode, Json
from clawbridge.agnt.fields import is_name
from clawbridge.agnt.signing import (
    SigningKeys,
    check_age,
    has_signature_form,
    matches_value,
    refuse_signature,
    sign_value,
)

MAX_HOPS = 4
MAX_UNIX_S = 10**12
Via = tuple["Hop", ...]


class Hop(NamedTuple):
    """An agent that passed an envelope on. `ts`: when, in Unix seconds. `sig`: 64 lower-case hex digits."""

    agent: str
    ts: int
    sig: str


def is_valid_via(value: Any, sender: Any) -> bool:
    """Whether a value is a chain of 1 to 4 hops, the last one of which is the sender of the envelope."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= MAX_HOPS
        and all(map(_is_hop, value))
        and value[-1]["agent"] == sender
    )


def read_via(fields: Json) -> Via:
    """The hops of an envelope whose `via`, if it has one, was checked by `is_valid_via`."""
    return tuple(Hop(**hop) for hop in fields.get("via", ()))


def describe_via(via: Sequence[Hop]) -> list[Json]:
    """Hops as an envelope has them."""
    return [hop._asdict() for hop in via]


def has_valid_origin(agent_context: Json) -> bool:
    """Whether the first sender that the context of an envelope with `via` names is a name; it may name none."""
    return "origin" not in agent_context or is_name(agent_context["origin"])


def find_origin(sender: str, agent_context: Json, via: Via) -> str:
    """The first sender of an envelope: with `via` the `origin` of its context, if it has one, else `sender`."""
    return str(agent_context.get("origin", sender)) if via else sender


def add_hop(via: Via, signature: str, *, agent: str, key: bytes, at_s: int) -> Via:
    """The chain with the hop of `agent` behind it. `signature`: of the payload, by `agent`.

    Raises:
        EnvelopeRefused: `routing_loop`.
    """
    check_hop_limit(via)
    before = via[-1].sig if via else signature
    return *via, Hop(agent, at_s, sign_value(_build_signed_value(agent, at_s, before), key=key))


def check_hop_limit(via: Via) -> None:
    """Refuse to pass an envelope on that was passed on four times.

    Raises:
        EnvelopeRefused: `routing_loop`.
    """
    if len(via) >= MAX_HOPS:
        raise EnvelopeRefused(
            ErrorCode.ROUTING_LOOP, f"via has {MAX_HOPS} hops: this envelope cannot be passed on again"
        )


def verify_last_hop(via: Via, signature: str, *, keys: SigningKeys, now_s: float) -> None:
    """Check the hop of the sender. `keys`: of the sender. `signature`: of the payload.

    Raises:
        EnvelopeRefused: `invalid_signature`; `timestamp_expired`: it is right, and too old or ahead of the time.
    """
    last = via[-1]
    before = via[-2].sig if len(via) > 1 else signature
    if not matches_value(_build_signed_value(last.agent, last.ts, before), last.sig, keys.live_at(now_s)):
        raise refuse_signature("via: the signature of the last hop does not match")
    check_age(last.ts, now_s)


def _is_hop(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"agent", "ts", "sig"}
        and is_name(value["agent"])
        and type(value["ts"]) is int
        and 0 <= value["ts"] < MAX_UNIX_S
        and has_signature_form(value["sig"])
    )


def _build_signed_value(agent: str, at_s: int, before: str) -> Json:
    return {"agent": agent, "ts": at_s, "prev": before}
