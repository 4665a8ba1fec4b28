"""The replies of venues: finds the payload in the reply of an agent, and checks it. No I/O."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct

from agents.transcript.pieces import ArtifactPiece, LastWords, Part, Piece
from agnt.client import Ask, CallFailed, read_response
from agnt.client.breakers import is_failure
from agnt.service.ports import VenueAnswer
from agnt.wire.errors import MEANINGS, EnvelopeRefused, ErrorCode, Json
from agnt.wire.fields import MAX_BODY_BYTES, build_envelope
from agnt.wire.payloads import MAX_ID_CHARS, MAX_NOTE_CHARS, MAX_PARTY_SIZE, MAX_TIME_CHARS
from kit import strict_json

UNREACHABLE = "the venue cannot be reached, or gave no answer that can be used: try again later"
VENUE_BUSY = "too many envelopes wait for this venue: try again later"
NETWORK_BUSY = "too many envelopes wait for the venues of this network: try again later"
NOT_IN_TIME = "the venue did not answer within ttl_ms"
TAKEN = "the venue has no such slot free"
LOOP = "the envelope was at the venue before, or was passed on too often"


class VenueFailed(Exception):
    """A venue gave no answer. The text is for the log, and may hold words of the venue.

    `refusal`: what the caller is answered. `counts`: the breakers take it as a failure, None: as no result.
    """

    def __init__(self, why: str, refusal: EnvelopeRefused, *, counts: bool | None) -> None:
        super().__init__(why)
        self.refusal = refusal
        self.counts = counts


def refuse_late(why: str) -> VenueFailed:
    """The failure of a venue whose answer did not come in time; the hub reads no later answer."""
    return VenueFailed(why, EnvelopeRefused(ErrorCode.TTL_EXCEEDED, NOT_IN_TIME), counts=True)


def refuse_unreachable(why: str, *, counts: bool | None) -> VenueFailed:
    """The failure of a venue that was not reached, or whose answer is of no use."""
    return VenueFailed(why, EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, UNREACHABLE), counts=counts)


class _Confirmation(Struct, frozen=True):
    """The payload of a venue's answer to `booking.confirm`; more keys are ignored.

    `status`: `pending`, as in AGNT's own answer to this intent, or `confirmed` if the booking is settled.
    """

    status: Literal["pending", "confirmed", "slot_unavailable"]
    slot_id: Annotated[str, Meta(max_length=MAX_ID_CHARS)] = ""
    slot_time: Annotated[str, Meta(max_length=MAX_TIME_CHARS)] = ""
    party_size: Annotated[int, Meta(ge=1, le=MAX_PARTY_SIZE)] | None = None
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS)] = ""


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
        raise _unusable(f"{len(found)} data parts")
    data = found[0]
    if not isinstance(data, dict) or not data:
        raise _unusable("no JSON object, or an empty one")
    try:
        size = len(msgspec.json.encode(data))
    except RecursionError:
        raise _unusable("nested too deep") from None
    if size > MAX_BODY_BYTES:
        raise _unusable(f"{size} bytes, at most {MAX_BODY_BYTES} are taken")
    return data


def read_data(data: Json, ask: Ask) -> Json:
    """The payload in the data part of a reply: a response envelope, or the payload of one by itself.

    Raises:
        VenueFailed: it is an error, or no response to this ask.
    """
    if "protocol" not in data:
        data = build_envelope(
            sender=ask.to,
            to=ask.sender,
            intent=ask.intent,
            payload=data,
            agent_context={},
            ttl_ms=0,
            timestamp="",
        )
    try:
        return read_response(data, ask).payload
    except CallFailed as failed:
        # No HTTP status came with it: the code says whether the venue is well.
        meaning = MEANINGS[ErrorCode(failed.code)] if failed.code in list(ErrorCode) else None
        counts = failed.is_failure or meaning is None or is_failure(meaning.status)
        raise blame_venue(failed, counts=counts) from None


def blame_venue(failed: CallFailed, *, counts: bool | None) -> VenueFailed:
    """The failure of a call, with the error that the caller of the hub gets."""
    match failed.code:
        case ErrorCode.SLOT_UNAVAILABLE:
            refusal = EnvelopeRefused(ErrorCode.SLOT_UNAVAILABLE, TAKEN)
        case ErrorCode.ROUTING_LOOP:
            refusal = EnvelopeRefused(ErrorCode.ROUTING_LOOP, LOOP)
        case ErrorCode.TTL_EXCEEDED:
            refusal = EnvelopeRefused(ErrorCode.TTL_EXCEEDED, NOT_IN_TIME)
        case _:
            refusal = EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, UNREACHABLE)
    return VenueFailed(f"{failed.code}: {failed}", refusal, counts=counts)


def read_confirmation(payload: Json) -> VenueAnswer:
    """The confirmation in a venue's payload.

    Raises:
        VenueFailed: `slot_unavailable`; or the payload is no answer to an order.
    """
    try:
        said = msgspec.convert(payload, _Confirmation)
    except msgspec.ValidationError as wrong:
        raise _unusable(str(wrong)) from None
    if any(map(strict_json.is_forbidden, (said.slot_id, said.slot_time, said.note))):
        raise _unusable("text with NUL or a lone surrogate")
    if said.status == "slot_unavailable":
        refusal = EnvelopeRefused(ErrorCode.SLOT_UNAVAILABLE, said.note or TAKEN)
        raise VenueFailed("slot_unavailable", refusal, counts=False)
    return VenueAnswer(slot_id=said.slot_id, slot_time=said.slot_time, party_size=said.party_size, note=said.note)


def _read_text(text: str) -> Any:
    try:
        return strict_json.read(text.encode(errors="replace"))
    except strict_json.UnreadableText as unreadable:
        raise _unusable(f"no data part, and {unreadable}") from None


def _unusable(why: str) -> VenueFailed:
    """The failure of a venue whose answer is of no use; breakers count the answer like a status 500."""
    return refuse_unreachable(f"the reply: {why}", counts=True)
