"""The session in an address, for the role that its call takes."""

from uuid import UUID

from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request

from accounts.rest import caller_of
from agents.models import Session
from agents.transcript.access import NotAllowed, Role, find_session


def get_session(request: Request, public_id: UUID, *, at_least: Role = Role.VIEWER) -> Session:
    """A session the caller may see, and do this with.

    Raises:
        NotFound: absent, or not theirs to see: no difference.
        PermissionDenied: they may see it, but their role does not reach.
    """
    try:
        session = find_session(public_id, caller_of(request).pk, at_least=at_least)
    except NotAllowed as refused:
        raise PermissionDenied(str(refused)) from None
    if session is None:
        raise NotFound("no such session")
    return session
