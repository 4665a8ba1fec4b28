"""Requests about sessions (section 11): an agent has its own, a client of the owner those of the team."""

from collections.abc import Callable
from typing import Any, TypeVar

from accounts.authn import AGENT_KINDS
from gateway.service import session_files, session_rows
from gateway.service.client import Client
from gateway.service.session_rows import SessionUser
from gateway.surface.handlers.team import get_team
from gateway.wire.errors import bad_content, bad_type, forbidden, missing
from gateway.wire.frame_types import MAX_NUMBER, is_agent_name, is_id
from gateway.wire.frames import MAX_FRAME_BYTES, Envelope, Json

FLUSHED_WITHIN_S = 5.0
DEFAULT_LISTED = 100
LONGEST_LOCK_MS = int(session_rows.LONGEST_LOCK.total_seconds() * 1000)
MOST_FRAME_TEXT = MAX_FRAME_BYTES - 65_536  # of an export in a frame, with its escapes

Result = TypeVar("Result")


async def create_session(client: Client, envelope: Envelope, params: Json) -> Json:
    """Make a session; `lockMs`: only the client may write to it for so long."""
    user = _user_of(client, envelope)
    agent, lock_ms = read_agent(params, user.agent), _lock_ms(params)
    session_id = read_id(params) if "sessionId" in params else ""
    made = await _run(client, session_rows.create_session, user, agent, session_id, lock_ms)
    return {"session": session_rows.show_session(made)}


async def list_sessions(client: Client, envelope: Envelope, params: Json) -> Json:
    """List sessions, archived ones only with `archived`."""
    user = _user_of(client, envelope)
    agent = read_agent(params) if "agent" in params else ""
    archived = params.get("archived", False)
    if not isinstance(archived, bool):
        raise bad_type("archived: want a boolean", field="archived")
    limit, after = read_limit(params), read_number(params, "after", 0, MAX_NUMBER)
    return await _run(client, session_rows.list_sessions, user, agent, archived=archived, limit=limit, after=after)


async def get_session(client: Client, envelope: Envelope, params: Json) -> Json:
    """Show entries of a session, in order."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    limit, after = read_limit(params), read_number(params, "after", 0, MAX_NUMBER)
    return await _run(client, session_rows.get_entries, user, agent, session_id, limit=limit, after=after)


async def commit_session(client: Client, envelope: Envelope, params: Json) -> Json:
    """Mark a session as committed."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    done = await _run(client, session_rows.commit_session, user, agent, session_id, _lock_ms(params))
    return {"session": session_rows.show_session(done)}


async def archive_sessions(client: Client, envelope: Envelope, params: Json) -> Json:
    """Archive one session by `sessionId`, or those whose last entry is older than `olderThan`."""
    user = _user_of(client, envelope)
    if "sessionId" in params:
        agent, session_id = read_agent(params, user.agent), read_id(params)
        done = await _run(client, session_rows.archive_session, user, agent, session_id)
        return {"archived": [session_rows.show_session(done)], "skipped": []}
    agent = read_agent(params) if "agent" in params else ""
    age = session_rows.read_age(read_text(params, "olderThan"))
    return await _run(client, session_rows.archive_older, user, agent, age)


async def delete_session(client: Client, envelope: Envelope, params: Json) -> Json:
    """Delete a session."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    await _run(client, session_rows.delete_session, user, agent, session_id)
    return {"deleted": session_id}


async def export_session(client: Client, envelope: Envelope, params: Json) -> Json:
    """A session as the text of `session.jsonl`."""
    user = _user_of(client, envelope)
    agent, session_id = read_agent(params, user.agent), read_id(params)
    text = (await _run(client, session_files.export_session, user, agent, session_id)).decode()
    if len(text.encode()) + text.count('"') + text.count("\\") + text.count("\n") > MOST_FRAME_TEXT:
        raise bad_content("this session is larger than a frame: export it over HTTP", reason="too_large")
    return {"jsonl": text}


async def import_sessions(client: Client, envelope: Envelope, params: Json) -> Json:
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
    """How many rows a page has, at least 1.

    Raises:
        FrameRefused: 2003, 2005.
    """
    return max(1, read_number(params, "limit", DEFAULT_LISTED, session_rows.MOST_LISTED))


def _user_of(client: Client, envelope: Envelope) -> SessionUser:
    """Whose sessions the client may read.

    Raises:
        FrameRefused: 5001; 5004 while it works for a caller of another owner, or has no seat yet.
    """
    owner_id, identity = get_team(client, envelope), client.identity
    if client.seat is None and identity.kind in AGENT_KINDS:
        raise forbidden("this connection has no seat: say agentId, or from", reason="no_seat")
    return SessionUser(owner_id, identity.login, client.seat_name)


async def _run(client: Client, function: Callable[..., Result], *args: object, **options: object) -> Result:
    """Read or change sessions; what this process took before is written by then, if the database takes it."""
    await client.gateway.recorder.flush(FLUSHED_WITHIN_S)
    return await client.gateway.router.read(function, *args, **options)


def _lock_ms(params: Json) -> int:
    return read_number(params, "lockMs", 0, LONGEST_LOCK_MS)
