"""What only the owner of a session does to it: lend it, take it back, put it away, delete it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from rest_framework.exceptions import NotFound

from accounts.models import User
from accounts.oauth.pages import to_signin
from agents.api.archiving import archive
from agents.models import Agent, Event, File, OpMessage, PermissionRequest, Session, Share, Turn
from agents.transcript.access import Role, SessionGone, share_session, unshare_session
from agents.transcript.deleting import delete_sessions
from operators.pages import Seen, find_seen

Act = Callable[[HttpRequest, Seen], str]
NOBODY = "Nobody here has the login {login}."
YOURS = "The session is theirs already."
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Number:
    """So many of something; counted no further than MOST_COUNTED."""

    name: str
    count: int

    @property
    def is_more(self) -> bool:
        """Whether there are more than were counted."""
        return self.count >= MOST_COUNTED


def _acting(act: Act) -> Callable[[HttpRequest, UUID], HttpResponse]:
    """A form's target: act as the owner, say what was done, go back to the session."""

    @never_cache
    @require_POST
    def target(request: HttpRequest, public_id: UUID) -> HttpResponse:
        seen = find_seen(request, public_id, at_least=Role.OWNER)
        if seen is None:
            return to_signin(request)
        messages.success(request, act(request, seen))
        return HttpResponseRedirect(reverse("operator-view", args=[public_id]))

    return target


def _share(request: HttpRequest, seen: Seen) -> str:
    login, role = request.POST.get("login", "").strip().removeprefix("@"), request.POST.get("role", "")
    user = _find_user(login)
    if user is None:
        return NOBODY.format(login=_shown(login))
    if user.pk == seen.session.owner_id:
        return YOURS
    if role not in Share.Role.values:
        return "Choose a role."
    try:
        share_session(seen.session, user, role, by=seen.user)
    except SessionGone:
        return "The session is gone."
    return f"Shared with @{user.login}, as {role}."


def _unshare(request: HttpRequest, seen: Seen) -> str:
    login = request.POST.get("login", "")
    user = _find_user(login)
    if user is None or not unshare_session(seen.session, user):
        return f"It was not shared with {_shown(login)}."
    return f"@{user.login} no longer sees this session."


def _archive(request: HttpRequest, seen: Seen) -> str:
    try:
        is_new, _ = archive(seen.session)
    except NotFound:
        return "The session is gone."
    return "Archived. It comes back when its agent does." if is_new else "It was archived already."


share, unshare, put_away = _acting(_share), _acting(_unshare), _acting(_archive)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """What would go with it, by numbers; a POST deletes it for good."""
    seen = find_seen(request, public_id, at_least=Role.OWNER)
    if seen is None:
        return to_signin(request)
    if request.method != "POST":
        context = {"seen": seen, "numbers": list(_numbers(seen.session)), "bytes": _bytes_of_files(seen.session)}
        return render(request, "operators/delete.html", context)
    gone, name = delete_sessions([seen.session.pk]), seen.session.routing_name
    messages.success(request, f"Deleted @{name}: {gone.count(Event)} events, {gone.bytes_freed} bytes of files.")
    return HttpResponseRedirect(_desk())


def _desk() -> str:
    try:
        return reverse("desk")
    except NoReverseMatch:
        return "/"


def _find_user(login: str) -> User | None:
    return User.objects.named(login) if 0 < len(login) <= 64 and login.isprintable() else None


def _shown(login: str) -> str:
    return login[:64].replace("\0", "") or "this login"


def _numbers(session: Session) -> Iterator[Number]:
    """What hangs on a session, kind by kind."""
    kinds: list[tuple[str, QuerySet[Any]]] = [
        ("events", Event.objects.filter(session=session)),
        ("messages between operators", OpMessage.objects.filter(session=session)),
        ("questions to its agent, in the audit", Turn.objects.filter(agent__session=session)),
        ("permission requests", PermissionRequest.objects.filter(session=session)),
        ("files", File.objects.filter(session=session)),
        ("people it is shared with", Share.objects.filter(session=session)),
        ("agents published on it", Agent.objects.filter(session=session)),
    ]
    for name, rows in kinds:
        yield Number(name, rows[:MOST_COUNTED].count())


def _bytes_of_files(session: Session) -> int:
    """The size of its live files; bytes that other sessions' files share stay when it goes."""
    total = File.objects.live().filter(session=session).aggregate(total=Sum("size"))["total"]
    return int(total or 0)
