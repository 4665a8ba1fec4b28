"""The replies of venues: finds the payload in the reply of an agent, and what the reply means.

The module does no I/O.
"""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from agents.transcript.pieces import ArtifactPiece, LastWords, Part, Piece
from clawbridge.agnt import Ask, CallFailed, describe_response, read_response
from clawbridge.agnt.breakers import Blame, blame_status
from clawbridge.agnt.fields import MAX_BODY_BYTES, MEANINGS, EnvelopeRefused, ErrorCode, Json
from clawbridge.agnt.replies import ACCEPTED, RATE_LIMITED, WAIT_S, BadReply, read_cancelled, read_reply
from kit import strict_json
from kit.clock import approximate_now
from kit.redaction import show_foreign

UNREACHABLE = "the venue cannot be reached, or gave no answer that can be used: try again later"
VENUE_BUSY = "too many envelopes wait for this venue: try again later"
NETWORK_BUSY = "too many envelopes wait for the venues of this network: try again later"
NOT_IN_TIME = "the venue did not answer within ttl_ms"
TAKEN = "the venue declined"
PAUSED = "the venue takes no orders now"
LOOP = "the envelope was at the venue before, or was passed on too often"
DECLINED = (ErrorCode.SLOT_UNAVAILABLE, ErrorCode.RATE_LIMITED)
MAX_SAID_CHARS = 500
MAX_RULE_CHARS = 300


class VenueFailed(CallFailed):
    """A venue gave no answer, or did not accept.

    The text names the rule that the venue broke, for its owner; of a venue that declines it is the venue's own.
    """

    @property
    def refusal(self) -> EnvelopeRefused:
        """The error that the caller gets. `may_be_booked`: the venue got the ask, and did not refuse it."""
        refused = self._make_refusal()
        refused.may_be_booked = self.was_sent and self.blame is not Blame.NONE
        return refused

    @property
    def is_fault(self) -> bool:
        """True if the venue has a fault to mend. A venue that declines an order has none."""
        return self.code not in DECLINED

    def describe(self) -> Json:
        """The failure for the log of the network, without secrets."""
        about = {"rule": str(self)[:MAX_RULE_CHARS], "venue_said": show_foreign(self.said, MAX_SAID_CHARS)}
        return {name: text for name, text in about.items() if text}

    def _make_refusal(self) -> EnvelopeRefused:
        match self.code:
            case ErrorCode.SLOT_UNAVAILABLE:
                return EnvelopeRefused(ErrorCode.SLOT_UNAVAILABLE, _clean(str(self)) or TAKEN)
            case ErrorCode.RATE_LIMITED:
                wait_s = self.retry_after_s or WAIT_S
                return EnvelopeRefused(ErrorCode.RATE_LIMITED, _clean(str(self)) or PAUSED, retry_after_s=wait_s)
            case ErrorCode.ROUTING_LOOP:
                return EnvelopeRefused(ErrorCode.ROUTING_LOOP, LOOP)
            case ErrorCode.TTL_EXCEEDED:
                return EnvelopeRefused(ErrorCode.TTL_EXCEEDED, NOT_IN_TIME)
        return EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, UNREACHABLE)


def decline(reason: str) -> VenueFailed:
    """The answer of a venue that declines, in the venue's own words."""
    return VenueFailed(ErrorCode.SLOT_UNAVAILABLE, reason, blame=Blame.NONE)


def find_data(pieces: Iterable[Piece], text: str) -> Json:
    """The one data part of a reply; without any, its text as JSON.

    Raises:
        VenueFailed: there is none, or more than one, or it is no object, empty or too large.
    """
    parts: dict[str, list[Part]] = {}
    for piece in pieces:
        if isinstance(piece, LastWords):
            parts[""] = list(piece.parts)
        elif isinstance(piece, ArtifactPiece):
            before = parts.get(piece.artifact_id, []) if piece.append else []
            parts[piece.artifact_id] = [*before, *piece.parts]
    found = [part.data for each in parts.values() for part in each if part.data is not UNSET]
    if not found:
        found = [_read_text(text)]
    if len(found) > 1:
        raise _unusable(f"want one data part, not {len(found)}", found)
    data = found[0]
    if not isinstance(data, dict) or not data:
        raise _unusable("want a JSON object that is not empty", data)
    try:
        size = len(msgspec.json.encode(data))
    except RecursionError:
        raise _unusable("want JSON that is not nested too deep") from None
    if size > MAX_BODY_BYTES:
        raise _unusable(f"want at most {MAX_BODY_BYTES} bytes, not {size}", data)
    return data


def read_data(data: Json, ask: Ask) -> Json:
    """The payload in the data part of a reply: a response envelope, or the payload of one by itself.

    Raises:
        VenueFailed: it is an error, or no response to this ask.
    """
    if "protocol" not in data:
        data = describe_response(ask, data, elapsed_s=0, now=approximate_now())
    try:
        return read_response(data, ask).payload
    except CallFailed as failed:
        # No HTTP status came with it: the code says whether the venue is well.
        meaning = MEANINGS[ErrorCode(failed.code)] if failed.code in list(ErrorCode) else None
        if not failed.blame.is_failure:
            failed.blame = blame_status(meaning.status) if meaning else Blame.VENUE
        failed.said = _show(data)
        raise as_venue_failure(failed) from None


def as_venue_failure(failed: CallFailed) -> VenueFailed:
    """The failure of a call as that of the venue. A venue that declines counts as healthy."""
    has_declined = failed.code in DECLINED
    return VenueFailed(
        failed.code,
        str(failed) if has_declined else f"{failed.code}: {failed}",
        retry_after_s=failed.retry_after_s,
        was_sent=failed.was_sent,
        blame=Blame.NONE if has_declined else failed.blame,
        said=failed.said,
    )


def read_confirmation(payload: Json) -> Json:
    """The payload with which a venue accepts an order.

    Raises:
        VenueFailed: the venue does not accept; or the payload is no reply to an order.
    """
    try:
        said = read_reply(payload)
    except BadReply as bad:
        raise _unusable(str(bad), payload) from None
    if said.status == RATE_LIMITED:
        wait_s = said.retry_after_s
        raise VenueFailed(ErrorCode.RATE_LIMITED, said.reason, retry_after_s=wait_s, blame=Blame.NONE)
    if said.status not in ACCEPTED:
        raise decline(said.reason or said.note)
    return payload


def read_acknowledgement(payload: Json) -> Json:
    """The payload with which a venue acknowledges a cancellation.

    Raises:
        VenueFailed: it is no reply to one.
    """
    try:
        read_cancelled(payload)
    except BadReply as bad:
        raise _unusable(str(bad), payload) from None
    return payload


def _read_text(text: str) -> Any:
    try:
        return strict_json.read(text.encode(errors="replace"))
    except strict_json.UnreadableText as unreadable:
        raise _unusable(f"want a data part or JSON alone: {unreadable}", text) from None


def _unusable(rule: str, said: Any = "") -> VenueFailed:
    """The failure of a venue whose answer is of no use; breakers count the answer like a status 500."""
    return VenueFailed(ErrorCode.VENUE_UNREACHABLE, f"the reply: {rule}", blame=Blame.VENUE, said=_show(said))


def _show(said: Any) -> str:
    """An answer as text, of any length; `describe` cuts the text."""
    if isinstance(said, str):
        return said
    try:
        return json.dumps(said, ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""


def _clean(words: str) -> str:
    """A text of a venue, cleaned for the caller."""
    return words[:MAX_SAID_CHARS].encode(errors="replace").decode()
