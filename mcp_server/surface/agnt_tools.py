"""The four intents of AGNT as tools, for callers with an AGNT key: they see these tools and no other."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from msgspec import Meta, Struct

from agnt.service.intake.runner import EnvelopeRunner, KeyCaller
from agnt.wire.payloads import MAX_FOUND, MAX_LISTED, Category, Location, SearchLocation, SearchQuery
from clawbridge.agnt.fields import (
    DEFAULT_TTL_MS,
    MAX_ID_CHARS,
    MAX_NOTE_CHARS,
    MAX_PARTY_SIZE,
    MAX_TIME_CHARS,
    MAX_TIMESTAMP_CHARS,
    MAX_TTL_MS,
)
from kit import strict_json
from mcp_server.surface.results import ListedTool, render_text

SENDER = "mcp"  # where the key names none
OF_ENVELOPE = ("sender", "timestamp")  # arguments that are fields of the envelope and not of its payload

Sender = Annotated[
    str,
    Meta(max_length=MAX_ID_CHARS, description="Who asks: a name that the key may use. By default its first one."),
]
Timestamp = Annotated[
    str,
    Meta(
        max_length=MAX_TIMESTAMP_CHARS,
        description="ISO 8601 in UTC. A call with the timestamp of an earlier one is that call: it books once.",
    ),
]


class PingArguments(Struct, forbid_unknown_fields=True):
    """Arguments of agnt.ping."""

    sender: Sender = ""
    timestamp: Timestamp = ""


class ListArguments(Struct, forbid_unknown_fields=True):
    """Arguments of agnt.list_venues."""

    category: Category = ""
    location: Location = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most so many, up to {MAX_LISTED}.")] = 50
    sender: Sender = ""
    timestamp: Timestamp = ""


class SearchArguments(Struct, forbid_unknown_fields=True):
    """Arguments of agnt.search_venues."""

    query: SearchQuery = ""
    location: SearchLocation = ""
    limit: Annotated[int, Meta(ge=1, description=f"At most so many, up to {MAX_FOUND}.")] = 10
    sender: Sender = ""
    timestamp: Timestamp = ""


class ConfirmArguments(Struct, forbid_unknown_fields=True):
    """Arguments of agnt.confirm_booking."""

    venue_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS, description="The venue's id or slug.")]
    slot_id: Annotated[str, Meta(max_length=MAX_ID_CHARS)] = ""
    slot_time: Annotated[str, Meta(max_length=MAX_TIME_CHARS, description="When, as the venue writes it.")] = ""
    party_size: Annotated[int, Meta(ge=1, le=MAX_PARTY_SIZE)] | None = None
    user_note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS, description="For the venue.")] = ""
    sender: Sender = ""
    timestamp: Timestamp = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgntTool(ListedTool):
    """An intent as a tool."""

    intent: str
    ttl_ms: int = DEFAULT_TTL_MS
    is_read_only: bool = True


AGNT_TOOLS: Mapping[str, AgntTool] = {
    "agnt.ping": AgntTool(
        intent="network.ping",
        arguments=PingArguments,
        title="Ping the network",
        description="How many venues the network has, and the tier of your key.",
    ),
    "agnt.list_venues": AgntTool(
        intent="venue.list",
        arguments=ListArguments,
        title="List venues",
        description="The venues of the network, the most recommended first.",
    ),
    "agnt.search_venues": AgntTool(
        intent="booking.search",
        arguments=SearchArguments,
        title="Search venues",
        description="Venues to book at. It reserves nothing.",
    ),
    "agnt.confirm_booking": AgntTool(
        intent="booking.confirm",
        arguments=ConfirmArguments,
        title="Confirm a booking",
        description="Book at a venue. Each success is charged to the owner of the key. After an error that may"
        " pass, call it again with the same timestamp: it books once.",
        ttl_ms=MAX_TTL_MS,
        is_read_only=False,
    ),
}
AGNT_LISTED = [tool.shown_as(name) for name, tool in AGNT_TOOLS.items()]


async def call_agnt_tool(
    calls: EnvelopeRunner, caller: KeyCaller, params: types.CallToolRequestParams
) -> types.CallToolResult:
    """Run a tool as one envelope; what the network refuses is a result that says why.

    Raises:
        MCPError: there is no such tool.
    """
    tool = AGNT_TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"no tool {params.name[:60]!r} here: see tools/list")
    arguments: dict[str, Any] = dict(params.arguments or {})
    given = {name: arguments.pop(name, "") or "" for name in OF_ENVELOPE}
    if wrong := [name for name, value in given.items() if not isinstance(value, str)]:
        return render_text(f"Error: {', '.join(wrong)}: want text.", is_error=True)
    if strict_json.is_deeper_than(arguments, 2):
        return render_text("Error: want texts and numbers as arguments.", is_error=True)
    sender = given["sender"] or next(iter(caller.key.senders), SENDER)
    response = await calls.call(
        caller, tool.intent, arguments, sender=sender, timestamp=given["timestamp"], ttl_ms=tool.ttl_ms
    )
    return render_response(response)


def render_response(response: dict[str, Any]) -> types.CallToolResult:
    """A response envelope as the result of a tool: its payload, as text and as data."""
    payload = response["payload"]
    if payload.get("status") != "error":
        text = types.TextContent(text=json.dumps(payload, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=payload)
    error = payload["error"]
    lines = [f"Error: {error['code']}: {error['message']}."]
    if error["retryable"]:
        wait_s = error.get("retry_after_s")
        lines.append(f"Call again later{f', after {wait_s} s' if wait_s else ''}: it may succeed.")
    else:
        lines.append("Change the arguments and call again; agnt.ping says what the key may do.")
    shown = types.TextContent(text="\n".join(lines))
    return types.CallToolResult(content=[shown], structured_content=payload, is_error=True)
