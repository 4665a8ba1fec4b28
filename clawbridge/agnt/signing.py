"""Signatures of AGNT: canonical JSON, its HMAC, how old a signed text may be; and the hops of an envelope.

The module does no I/O.

`_sig` covers the payload alone; the header `X-A2A-Envelope-Signature` covers the time and the whole body. `via` is
the signed chain of the agents that passed an envelope on. Each hop signs its name, its time and the signature
before it: the first hop that of the payload as it sent it, the others that of the hop before. A receiver has the
key of its sender alone: it verifies the last hop.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard

from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode, Json, is_name

MAX_AGE_S = 300
MAX_AHEAD_S = 60
MAX_HOPS = 4
MAX_UNIX_S = 10**12
Via = tuple["Hop", ...]
_HEADER = re.compile(r"ts=(0|[1-9][0-9]{0,11}),v1=([0-9a-f]{64})")
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The keys of one sender. `previous` verifies too, until `previous_until_s` (Unix seconds); empty: none."""

    current: bytes = field(repr=False)
    previous: bytes = field(default=b"", repr=False)
    previous_until_s: float = 0

    def live_at(self, now_s: float) -> tuple[bytes, ...]:
        """The keys that verify at this time, the current one first."""
        if self.previous and now_s < self.previous_until_s:
            return (self.current, self.previous)
        return (self.current,)


def derive_tenant_key(master: bytes, tenant: str) -> bytes:
    """The key of a tenant, 32 bytes.

    Raises:
        ValueError: there is no master key.
    """
    if not master:
        raise ValueError("the master key is empty")
    return hmac.digest(master, f"a2a-signing:{tenant}".encode(), hashlib.sha256)


def read_key(secret: str) -> bytes:
    """The key that a configured secret stands for: its UTF-8 bytes.

    64 hex digits are 32 bytes, because the hub gives secrets out so; other bytes are written as `hex:` and digits.

    Raises:
        ValueError: it is empty, or what follows `hex:` is not hex.
    """
    if _HEX.fullmatch(secret):
        return bytes.fromhex(secret)
    try:
        is_hex = secret.startswith("hex:")
        key = bytes.fromhex(secret.removeprefix("hex:")) if is_hex else secret.encode(errors="surrogateescape")
    except ValueError:
        raise ValueError("want hex digits behind hex:") from None
    if not key:
        raise ValueError("the secret is empty")
    return key


def canonical_json(value: Any) -> bytes:
    """A value as it is signed: keys in code-point order, no spaces, ASCII alone, numbers as Python writes them.

    Raises:
        ValueError: it holds NaN or an infinity.
    """
    return _canonical.encode(value).encode("ascii")


def sign_payload(payload: Json, *, key: bytes, sender: str, at_s: int) -> Json:
    """The payload with `_ts`, `_from` and `_sig`, in place of those that it came with.

    Raises:
        ValueError: it holds NaN or an infinity.
    """
    signed = {name: value for name, value in payload.items() if name != "_sig"} | {"_ts": at_s, "_from": sender}
    return signed | {"_sig": sign_value(signed, key=key)}


def sign_value(value: Json, *, key: bytes) -> str:
    """The signature of a value's canonical JSON.

    Raises:
        ValueError: it holds NaN or an infinity.
    """
    return _sign(key, canonical_json(value))


def matches_value(value: Json, signature: str, keys: tuple[bytes, ...]) -> bool:
    """True if this is the signature of a value with one of the keys."""
    return _matches(signature, canonical_json(value), keys)


def has_signature_form(value: Any) -> TypeGuard[str]:
    """True if a value has the form of a signature: 64 lower-case hex digits."""
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def verify_payload(
    payload: Json, *, keys: SigningKeys, sender: str, now_s: float, text: str = "", is_demanded: bool = True
) -> str:
    """The signature of a payload that `sender` signed; empty: it has none, and none is demanded.

    `text`: the envelope as received. JavaScript writes some numbers in another way than Python: a payload whose
    signature does not match is tried once more with its numbers as they stand there.

    Raises:
        EnvelopeRefused: `invalid_signature`; `timestamp_expired`: it is right, and too old or ahead of the time.
    """
    if "_sig" not in payload and not is_demanded:
        return ""
    signature, signed_at = payload.get("_sig"), payload.get("_ts")
    if not has_signature_form(signature):
        raise make_signature_error(
            "the payload is not signed" if signature is None else "_sig: want 64 lower-case hex digits"
        )
    if not isinstance(signed_at, int) or isinstance(signed_at, bool):
        raise make_signature_error("_ts: want Unix seconds as an integer")
    if payload.get("_from") != sender:
        raise make_signature_error("_from: want the sender of the envelope")
    if not _is_payload_signed(payload, signature, keys.live_at(now_s), text):
        raise make_signature_error("the signature does not match the payload")
    check_age(signed_at, now_s)
    return signature


def sign_body(body: bytes, *, key: bytes, at_s: int) -> str:
    """The value of `X-A2A-Envelope-Signature` for a body."""
    return f"ts={at_s},v1={_sign(key, _with_time(str(at_s), body))}"


def verify_body(header: str, body: bytes, *, keys: SigningKeys, now_s: float) -> None:
    """Check `X-A2A-Envelope-Signature` against the body as received.

    Raises:
        EnvelopeRefused: `invalid_signature`; `timestamp_expired`: it is right, and too old or ahead of the time.
    """
    found = _HEADER.fullmatch(header)
    if found is None:
        raise make_signature_error(
            "X-A2A-Envelope-Signature: want ts=<Unix seconds>,v1=<64 lower-case hex digits>"
        )
    signed_at, signature = found.groups()
    if not _matches(signature, _with_time(signed_at, body), keys.live_at(now_s)):
        raise make_signature_error("X-A2A-Envelope-Signature does not match the body")
    check_age(int(signed_at), now_s)


def check_age(sent_at_s: float, now_s: float) -> None:
    """Refuse a signed time that is over 300 s old, or over 60 s ahead. Both in Unix seconds.

    Raises:
        EnvelopeRefused: `timestamp_expired`.
    """
    if sent_at_s < now_s - MAX_AGE_S or sent_at_s > now_s + MAX_AHEAD_S:
        allowed = f"at most {MAX_AGE_S} s old and {MAX_AHEAD_S} s ahead"
        raise EnvelopeRefused(ErrorCode.TIMESTAMP_EXPIRED, f"send it again with a fresh timestamp: {allowed}")


class _Number(str):
    """A number as its sender wrote it."""

    __slots__ = ()


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_as_received = json.JSONDecoder(parse_int=_Number, parse_float=_Number)


def _is_payload_signed(payload: Json, signature: str, keys: tuple[bytes, ...], text: str) -> bool:
    unsigned = {name: value for name, value in payload.items() if name != "_sig"}
    if matches_value(unsigned, signature, keys):
        return True
    if not text:
        return False
    received = _as_received.decode(text)["payload"]
    del received["_sig"]
    return _matches(signature, _join_as_received(received).encode("ascii"), keys)


def _join_as_received(value: Any) -> str:
    """Canonical JSON with each number as it was received."""
    if isinstance(value, _Number):
        return value
    if isinstance(value, dict):
        members = (f"{_canonical.encode(key)}:{_join_as_received(value[key])}" for key in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_join_as_received, value))}]"
    return _canonical.encode(value)


def _matches(signature: str, signed: bytes, keys: tuple[bytes, ...]) -> bool:
    return any(hmac.compare_digest(signature, _sign(key, signed)) for key in keys)


def _sign(key: bytes, signed: bytes) -> str:
    return hmac.digest(key, signed, hashlib.sha256).hex()


def _with_time(signed_at: str, body: bytes) -> bytes:
    return signed_at.encode("ascii") + b"." + body


def make_signature_error(message: str) -> EnvelopeRefused:
    """The error for a signature that is missing or wrong."""
    return EnvelopeRefused(ErrorCode.INVALID_SIGNATURE, message)


class Hop(NamedTuple):
    """An agent that passed an envelope on. `ts`: when, in Unix seconds. `sig`: 64 lower-case hex digits."""

    agent: str
    ts: int
    sig: str


def is_valid_via(value: Any, sender: Any) -> bool:
    """True if a value is a chain of 1 to 4 hops, the last one of which is the sender of the envelope."""
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
    """True if the first sender that the context of an envelope with `via` names is a name; it may name none."""
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
        raise make_signature_error("via: the signature of the last hop does not match")
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
