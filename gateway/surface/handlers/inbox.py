"""The services of inboxes (section 10.5): messages that waited, and what became of them.

An agent reads its own inbox, but not while it works for a caller who is not its owner. Clients without a seat read
any inbox of the team, by `agent`, if their role and token are for it.
"""

from typing import Any

from accounts.authn import AGENT_KINDS
from gateway.service import inbox
from gateway.service.addressing import NewMessage
from gateway.service.client import Client
from gateway.surface.handlers.team import get_team
from gateway.wire.errors import bad_content, bad_type, forbidden, missing
from gateway.wire.frame_types import FRAME_TYPES, is_agent_name, is_id
from gateway.wire.frames import Envelope, Json, check_frame, new_id

MOST_AT_ONCE = 100
DEFAULT_LIMIT = 10
MOST_IDS = 1_000
FARTHEST = 10**6


async def send(client: Client, envelope: Envelope, params: Json) -> Json:
    """Put a message into an agent's inbox; it is delivered in its turn, at once when the agent is there."""
    metadata = {key: params[key] for key in ("priority", "ttl", "threadId", "parentId") if key in params}
    content = params["message"] if "message" in params else params.get("content")
    role = params.get("role", "agent" if client.seat is not None else "user")
    frame: Json = {
        "type": "message",
        "id": params.get("id", new_id()),
        "agent": params.get("agent", ""),
        "content": {"role": role, "content": content},
        "metadata": metadata,
    }
    message = check_frame(frame, FRAME_TYPES["message"])
    behalf = client.get_behalf(envelope)
    stored = await client.messages.leave(NewMessage(message, behalf, client.sender))
    return {"messageId": stored.message_id, "agent": message.agent, "state": "queued"}


async def get(client: Client, envelope: Envelope, params: Json) -> Json:
    """The newest stored messages of an inbox; `unread`: only those not read."""
    return await _load(
        client, envelope, params, is_unread=_read(params, "unread", bool, "a boolean", default=False)
    )


async def unread(client: Client, envelope: Envelope, params: Json) -> Json:
    """The newest stored messages that were not read."""
    return await _load(client, envelope, params, is_unread=True)


async def mark_read(client: Client, envelope: Envelope, params: Json) -> Json:
    """Note that stored messages were read: those of `ids`, or `all`."""
    session_id = _own_seat(client, envelope)
    ids = _read(params, "ids", list, "an array of message ids", default=[])
    wants_all = _read(params, "all", bool, "a boolean", default=False)
    if not ids and not wants_all:
        raise missing("ids is missing; or all", field="content.params.ids")
    if len(ids) > MOST_IDS or not all(isinstance(one, str) and is_id(one) for one in ids):
        raise bad_content(f"ids: want at most {MOST_IDS} message ids", field="content.params.ids")
    marked = await client.gateway.router.read(inbox.mark_read, session_id, None if wants_all else ids)
    return {"marked": marked}


async def count(client: Client, envelope: Envelope, params: Json) -> Json:
    """How many stored messages an inbox has, and how many were not read."""
    session_id = await _find_inbox(client, envelope, params)
    counted: Json = await client.gateway.router.read(inbox.count_messages, session_id)
    return counted


async def clear(client: Client, envelope: Envelope, params: Json) -> Json:
    """Delete what was delivered, and end what waits."""
    cleared: Json = await client.gateway.router.read(inbox.clear_inbox, _own_seat(client, envelope))
    return cleared


async def list_inboxes(client: Client, envelope: Envelope, params: Json) -> Json:
    """The inboxes that the client may read, with their counts."""
    owner_id = get_team(client, envelope)
    session_id = client.seat.session_id if client.seat is not None else 0
    if not session_id:
        _check_owner(client)
    found = await client.gateway.router.read(inbox.list_inboxes, owner_id, session_id)
    return {"inboxes": found}


async def receipt(client: Client, envelope: Envelope, params: Json) -> Json:
    """The state of a stored message that the client sent."""
    message_id = _read(params, "messageId", str, "a message id", default="")
    agent = _read(params, "agent", str, "the name of an agent", default="")
    if not message_id:
        raise missing("messageId is missing", field="content.params.messageId")
    user_id = client.get_behalf(envelope).asker.user_id
    names = client.sender.names
    found = await client.gateway.router.read(inbox.load_receipts, user_id, names, message_id, agent)
    if not found:
        raise bad_content("no stored message of yours has that id", reason="message_not_found")
    return {"receipts": found}


async def _load(client: Client, envelope: Envelope, params: Json, *, is_unread: bool) -> Json:
    limit = _read(params, "limit", int, "a number", default=DEFAULT_LIMIT)
    offset = _read(params, "offset", int, "a number", default=0)
    if not 1 <= limit <= MOST_AT_ONCE or not 0 <= offset <= FARTHEST:
        wanted = f"limit: want 1 to {MOST_AT_ONCE}; offset: 0 to {FARTHEST}"
        raise bad_content(wanted, field="content.params.limit")
    session_id = await _find_inbox(client, envelope, params)
    read = client.gateway.router.read
    return {"messages": await read(inbox.load_messages, session_id, limit, offset, is_unread=is_unread)}


def _own_seat(client: Client, envelope: Envelope) -> int:
    get_team(client, envelope)
    if client.seat is None:
        raise forbidden("only an agent does this, with its own inbox", reason="no_seat")
    return client.seat.session_id


async def _find_inbox(client: Client, envelope: Envelope, params: Json) -> int:
    """The inbox that `agent` names: the client's own, or any of the team for its owner."""
    owner_id = get_team(client, envelope)
    name = _read(params, "agent", str, "the name of an agent", default="")
    if client.seat is not None:
        if name and name != client.seat.name:
            raise forbidden("an agent reads its own inbox alone", field="content.params.agent")
        return client.seat.session_id
    _check_owner(client)
    if not is_agent_name(name):
        raise bad_content("agent: want the name of an agent of your team", field="content.params.agent")
    session_id: int = await client.gateway.router.read(inbox.get_seat, owner_id, name)
    return session_id


def _check_owner(client: Client) -> None:
    if client.identity.kind in AGENT_KINDS:
        raise forbidden("take a seat first: the inbox of an agent is the agent's", reason="no_seat")


def _read(params: Json, name: str, kind: type, wanted: str, *, default: Any) -> Any:
    value = params.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise bad_type(f"{name}: want {wanted}", field=f"content.params.{name}")
    return value
