"""Requests about inboxes with stored messages, and about sessions (sections 10.5 and 11).

An agent reads its own, but not while it works for a caller who is not its owner. A client without a seat reads
those of the whole team, if its role and token allow it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from accounts.authn import AGENT_KINDS
from gateway.service import inbox, session_files, session_rows
from gateway.service.client import TeamClient
from gateway.service.messages import NewMessage
from gateway.service.session_rows import SessionUser
from gateway.surface.handlers.team import get_team
from gateway.wire.errors import bad_content, bad_type, forbidden, missing
from gateway.wire.frame_types import FRAME_TYPES, MAX_NUMBER, is_agent_name, is_id
from gateway.wire.frames import MAX_FRAME_BYTES, Envelope, Json, check_frame, new_id

MAX_AT_ONCE = 100
DEFAULT_LIMIT = 10
MAX_IDS = 1_000
FARTHEST = 10**6


async def send(client: TeamClient, envelope: Envelope, params: Json) -> Json:
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


async def get(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """The newest stored messages of an inbox; `unread`: only those not read."""
    return await _load(
        client, envelope, params, is_unread=_read(params, "unread", bool, "a boolean", default=False)
    )


async def unread(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """The newest stored messages that were not read."""
    return await _load(client, envelope, params, is_unread=True)


async def mark_read(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Note that stored messages were read: those of `ids`, or `all`."""
    session_id = _own_seat(client, envelope)
    ids = _read(params, "ids", list, "an array of message ids", default=[])
    wants_all = _read(params, "all", bool, "a boolean", default=False)
    if not ids and not wants_all:
        raise missing("ids is missing; or all", field="content.params.ids")
    if len(ids) > MAX_IDS or not all(isinstance(one, str) and is_id(one) for one in ids):
        raise bad_content(f"ids: want at most {MAX_IDS} message ids", field="content.params.ids")
    marked = await client.gateway.router.read(inbox.mark_read, session_id, None if wants_all else ids)
    return {"marked": marked}


async def count(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """The numbers of stored and of unread messages of an inbox."""
    session_id = await _find_inbox(client, envelope, params)
    counted: Json = await client.gateway.router.read(inbox.count_messages, session_id)
    return counted


async def clear(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Delete the delivered messages of an inbox, and end the waiting ones."""
    cleared: Json = await client.gateway.router.read(inbox.clear_inbox, _own_seat(client, envelope))
    return cleared


async def list_inboxes(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """The inboxes that the client may read, with their counts."""
    owner_id = get_team(client, envelope)
    session_id = client.seat.session_id if client.seat is not None else 0
    if not session_id:
        _check_owner(client)
    found = await client.gateway.router.read(inbox.list_inboxes, owner_id, session_id)
    return {"inboxes": found}


async def receipt(client: TeamClient, envelope: Envelope, params: Json) -> Json:
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


async def _load(client: TeamClient, envelope: Envelope, params: Json, *, is_unread: bool) -> Json:
    limit = _read(params, "limit", int, "a number", default=DEFAULT_LIMIT)
    offset = _read(params, "offset", int, "a number", default=0)
    if not 1 <= limit <= MAX_AT_ONCE or not 0 <= offset <= FARTHEST:
        wanted = f"limit: want 1 to {MAX_AT_ONCE}; offset: 0 to {FARTHEST}"
        raise bad_content(wanted, field="content.params.limit")
    session_id = await _find_inbox(client, envelope, params)
    read = client.gateway.router.read
    return {"messages": await read(inbox.load_messages, session_id, limit, offset, is_unread=is_unread)}


def _own_seat(client: TeamClient, envelope: Envelope) -> int:
    get_team(client, envelope)
    if client.seat is None:
        raise forbidden("only an agent does this, with its own inbox", reason="no_seat")
    return client.seat.session_id


async def _find_inbox(client: TeamClient, envelope: Envelope, params: Json) -> int:
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


def _check_owner(client: TeamClient) -> None:
    if client.identity.kind in AGENT_KINDS:
        raise forbidden("take a seat first: the inbox of an agent is the agent's", reason="no_seat")


def _read(params: Json, name: str, kind: type, wanted: str, *, default: Any) -> Any:
    value = params.get(name, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise bad_type(f"{name}: want {wanted}", field=f"content.params.{name}")
    return value


FLUSHED_WITHIN_S = 5.0
DEFAULT_LISTED = 100
LONGEST_LOCK_MS = int(session_rows.LONGEST_LOCK.total_seconds() * 1000)
MAX_FRAME_TEXT = MAX_FRAME_BYTES - 65_536  # of an export in a frame, with its escapes

Result = TypeVar("Result")


async def create_session(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Make a session; `lockMs`: only the client may write to it for so long."""
    user = _user_of(client, envelope)
    agent, lock_ms = read_agent(params, user.agent), _lock_ms(params)
    session_id = read_id(params) if "sessionId" in params else ""
    made = await _run(client, session_rows.create_session, user, agent, session_id, lock_ms)
    return {"session": session_rows.show_session(made)}


async def list_sessions(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """List sessions, archived ones only with `archived`."""
    user = _user_of(client, envelope)
    agent = read_agent(params) if "agent" in params else ""
    archived = params.get("archived", False)
    if not isinstance(archived, bool):
        raise bad_type("archived: want a boolean", field="archived")
    limit, after = read_limit(params), read_number(params, "after", 0, MAX_NUMBER)
    return await _run(client, session_rows.list_sessions, user, agent, archived=archived, limit=limit, after=after)


async def get_session(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Show entries of a session, in order."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    limit, after = read_limit(params), read_number(params, "after", 0, MAX_NUMBER)
    return await _run(client, session_rows.get_entries, user, agent, session_id, limit=limit, after=after)


async def commit_session(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Mark a session as committed."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    done = await _run(client, session_rows.commit_session, user, agent, session_id, _lock_ms(params))
    return {"session": session_rows.show_session(done)}


async def archive_sessions(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Archive one session by `sessionId`, or those whose last entry is older than `olderThan`."""
    user = _user_of(client, envelope)
    if "sessionId" in params:
        agent, session_id = read_agent(params, user.agent), read_id(params)
        done = await _run(client, session_rows.archive_session, user, agent, session_id)
        return {"archived": [session_rows.show_session(done)], "skipped": []}
    agent = read_agent(params) if "agent" in params else ""
    age = session_rows.read_age(read_text(params, "olderThan"))
    return await _run(client, session_rows.archive_older, user, agent, age)


async def delete_session(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Delete a session."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    await _run(client, session_rows.delete_session, user, agent, session_id)
    return {"deleted": session_id}


async def export_session(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """A session as the text of `session.jsonl`."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    text = (await _run(client, session_files.export_session, user, agent, session_id)).decode()
    if len(text.encode()) + text.count('"') + text.count("\\") + text.count("\n") > MAX_FRAME_TEXT:
        raise bad_content("this session is larger than a frame: export it over HTTP", reason="too_large")
    return {"jsonl": text}


async def import_sessions(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Import the sessions of the text of `session.jsonl`, with the text of its index, if it has one."""
    user = _user_of(client, envelope)
    agent, text = read_agent(params, user.agent), read_text(params, "jsonl")
    index = read_text(params, "index") if "index" in params else ""
    logs = await _run(client, session_files.import_sessions, user, agent, text.encode(), index.encode())
    return {"sessions": [session_rows.show_session(log) for log in logs]}


def read_agent(params: Json, default: str = "") -> str:
    """The name of an agent; `default` when there is none.

    Raises:
        FrameRefused: 2002, 2003, 2005.
    """
    name = read_text(params, "agent", default)
    if not is_agent_name(name):
        raise bad_content("agent: want the name of an agent", field="agent")
    return name


def read_id(params: Json) -> str:
    """The id of a session.

    Raises:
        FrameRefused: 2002, 2003, 2005.
    """
    session_id = read_text(params, "sessionId")
    if not is_id(session_id):
        raise bad_content("sessionId: want 1 to 128 printable characters", field="sessionId")
    return session_id


def read_text(params: Json, name: str, default: str = "") -> str:
    """A text.

    Raises:
        FrameRefused: 2002 when it is absent without a default; 2003.
    """
    value: Any = params.get(name, default or None)
    if value is None:
        raise missing(f"{name} is missing", field=name)
    if not isinstance(value, str):
        raise bad_type(f"{name}: want a string", field=name)
    return value


def read_number(params: Json, name: str, default: int, most: int) -> int:
    """A whole number from 0 to `most`.

    Raises:
        FrameRefused: 2003, 2005.
    """
    value: Any = params.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise bad_type(f"{name}: want a whole number", field=name)
    if not 0 <= value <= most:
        raise bad_content(f"{name}: want 0 to {most}", field=name)
    return value


def read_limit(params: Json) -> int:
    """The number of rows of a page, at least 1.

    Raises:
        FrameRefused: 2003, 2005.
    """
    return max(1, read_number(params, "limit", DEFAULT_LISTED, session_rows.MAX_LISTED))


def _user_of(client: TeamClient, envelope: Envelope) -> SessionUser:
    """The user whose sessions the client may read.

    Raises:
        FrameRefused: 5001; 5004 while it works for a caller of another owner, or has no seat yet.
    """
    owner_id, identity = get_team(client, envelope), client.identity
    if client.seat is None and identity.kind in AGENT_KINDS:
        raise forbidden("this connection has no seat: say agentId, or from", reason="no_seat")
    return SessionUser(owner_id, identity.login, client.seat_name)


async def _run(client: TeamClient, function: Callable[..., Result], *args: object, **options: object) -> Result:
    """Read or change sessions; what this process took before is written by then, if the database takes it."""
    await client.gateway.recorder.flush(FLUSHED_WITHIN_S)
    return await client.gateway.router.read(function, *args, **options)


def _lock_ms(params: Json) -> int:
    return read_number(params, "lockMs", 0, LONGEST_LOCK_MS)
