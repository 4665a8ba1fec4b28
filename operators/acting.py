"""What an operator does to a session besides prompting it."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from agents.access import Role
from agents.transcript import op_messages, permissions
from operators.prompting import get_session


def say(public_id: UUID, *, author_id: int, author_login: str, text: str, mentions: Sequence[str] | None) -> None:
    """Tell the other operators something.

    Raises:
        NoSuchSession, NotAllowed: nothing was kept.
    """
    session = get_session(public_id, author_id, Role.PROMPTER)
    op_messages.post(session, author_id=author_id, author_login=author_login, text=text, mentions=mentions)


def decide(
    public_id: UUID, request_id: str, *, decision: Literal["allow", "deny"], resolver_id: int, message: str
) -> None:
    """Decide a permission request, if nobody did before.

    Raises:
        NoSuchSession, NotAllowed, NoSuchRequest, AlreadyResolved: nothing was decided.
    """
    session = get_session(public_id, resolver_id, Role.APPROVER)
    permissions.decide(session.pk, request_id, decision=decision, resolver_id=resolver_id, message=message)
