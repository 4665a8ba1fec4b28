"""A session as its operators see it in a browser: what was, from here; what happens, over `/cli`."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.oauth.pages import signed_in, to_signin
from agents.models import File, Session, Share
from agents.models.reachable import is_online
from agents.transcript.access import Role, find_session, role_of
from agents.transcript.reading import Before, history
from operators.attaching import present
from operators.showing import row_of

ROWS = 50
MOST_FILES = 100
MOST_SHARES = 200


@dataclass(frozen=True, slots=True)
class Seen:
    """A session, and who looks at it in which role."""

    session: Session
    user: User
    role: Role

    @property
    def may_prompt(self) -> bool:
        """Whether prompts, messages and files are theirs to send."""
        return self.role >= Role.PROMPTER

    @property
    def may_decide(self) -> bool:
        """Whether requests for leave are theirs to decide."""
        return self.role >= Role.APPROVER

    @property
    def is_owner(self) -> bool:
        """Whether it is theirs."""
        return self.role == Role.OWNER

    @property
    def as_data(self) -> dict[str, Any]:
        """What the page's scripts need to know."""
        return {"id": str(self.session.public_id), "role": self.role.word, "login": self.user.login}


@never_cache
@gzip_page
@require_safe
def view(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The page. `before`: from an earlier time on, without what happens now."""
    seen = find_seen(request, public_id)
    if seen is None:
        return to_signin(request)
    session = seen.session
    context = {
        **_rows(request, seen),
        **_files(seen),
        "is_past": "before" in request.GET,
        "is_online": is_online(session.pk),
        "attached": present(session.pk).logins,
        "shares": _shares(seen),
        "share_roles": Share.Role.choices,
    }
    return render(request, "operators/view.html", context)


@never_cache
@gzip_page
@require_safe
def rows(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The lines alone, for the page's script: it asks again whenever something happened."""
    seen = get_seen(request, public_id)
    return render(request, "operators/rows.html", _rows(request, seen))


@never_cache
@gzip_page
@require_safe
def files(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The list of files alone."""
    return render(request, "operators/files.html", _files(get_seen(request, public_id)))


def find_seen(request: HttpRequest, public_id: UUID, *, at_least: Role = Role.VIEWER) -> Seen | None:
    """The session of an address for whoever is signed in; None when nobody is.

    Raises:
        Http404: absent, not theirs to see, or the role does not reach: no difference.
    """
    caller = signed_in(request)
    if caller is None:
        return None
    session = find_session(public_id, caller.user.pk)
    if session is None or role_of(session) < at_least:
        raise Http404
    return Seen(session, caller.user, role_of(session))


def get_seen(request: HttpRequest, public_id: UUID) -> Seen:
    """The same, where signing in is no answer.

    Raises:
        Http404: see `find_seen`, or nobody is signed in.
    """
    seen = find_seen(request, public_id)
    if seen is None:
        raise Http404
    return seen


def _rows(request: HttpRequest, seen: Seen) -> dict[str, Any]:
    page = history(seen.session.pk, Before.read(request.GET.get("before", "")), ROWS)
    return {"seen": seen, "rows": [row_of(moment) for moment in page.moments], "before": page.before}


def _files(seen: Seen) -> dict[str, Any]:
    live = File.objects.live().filter(session=seen.session).select_related("uploader").order_by("-pk")
    found = list(live[: MOST_FILES + 1])
    return {"seen": seen, "files": found[:MOST_FILES], "has_more_files": len(found) > MOST_FILES}


def _shares(seen: Seen) -> list[Share]:
    if not seen.is_owner:
        return []
    return list(Share.objects.filter(session=seen.session).select_related("user").order_by("pk")[:MOST_SHARES])
