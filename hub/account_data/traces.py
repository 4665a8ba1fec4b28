"""What of a user is in others' rows: where to look, and what to look for."""

from dataclasses import dataclass

from accounts.models import User
from agents.models import Agent, File, OpMessage, Session, Share, Turn


@dataclass(frozen=True, slots=True)
class Traces:
    """Login and handles; turns they asked, files they sent; others' sessions that may speak of them, and theirs.

    Sessions of others by row, their own by public id.
    """

    login: str
    handles: frozenset[str]
    chat_ids: frozenset[str]
    file_ids: frozenset[int]
    session_ids: frozenset[int]
    own_sessions: frozenset[str]


def traces_of(user: User) -> Traces:
    """Read before their own rows go."""
    asked = Turn.objects.filter(caller=user)
    were_asked = Turn.objects.owned_by(user.pk)
    sessions: set[int | None] = set(asked.values_list("session_id", flat=True))
    sessions.update(asked.values_list("source_session_id", flat=True))
    sessions.update(were_asked.values_list("source_session_id", flat=True))
    sessions.update(Share.objects.filter(user=user).values_list("session_id", flat=True))
    sessions.update(OpMessage.objects.filter(author=user).values_list("session_id", flat=True))
    sessions.update(File.objects.filter(uploader=user).values_list("session_id", flat=True))
    return Traces(
        login=user.former_login,
        handles=frozenset(Agent.objects.filter(owner=user).values_list("handle", flat=True)),
        chat_ids=frozenset(asked.values_list("chat_id", flat=True)),
        file_ids=frozenset(File.objects.filter(uploader=user).values_list("pk", flat=True)),
        session_ids=frozenset(one for one in sessions if one is not None),
        own_sessions=frozenset(map(str, Session.objects.filter(owner=user).values_list("public_id", flat=True))),
    )
