"""The pages of a session: its view for operators in a browser, and the actions of its owner."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Model, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import NoReverseMatch, path, reverse

from accounts.models import User
from accounts.pages import View, user_form, user_page, user_part, user_post
from agents.models import Agent, Event, File, OpMessage, PermissionRequest, Session, Share, Turn
from agents.models.session import is_online
from agents.transcript import permissions
from agents.transcript.access import (
    SessionGone,
    SessionRole,
    archive_session,
    find_session,
    role_of,
    share_session,
    unshare_session,
)
from agents.transcript.session_deletion import delete_sessions
from agents.transcript.timeline import Position, TimelinePage, find_turn_position, read_history, read_history_from
from operators.service.session_views import build_rows, load_attendance, row_of_request

ROWS = 50
MAX_FILES = 100
MAX_SHARES = 200


@dataclass(frozen=True, slots=True)
class VisibleSession:
    """A session, the user who looks at it, and the user's role."""

    session: Session
    user: User
    role: SessionRole

    @property
    def may_prompt(self) -> bool:
        """True if the user may send prompts, messages and files."""
        return self.role >= SessionRole.PROMPTER

    @property
    def may_decide(self) -> bool:
        """True if the user may decide permission requests."""
        return self.role >= SessionRole.APPROVER

    @property
    def is_owner(self) -> bool:
        """True if the user owns the session."""
        return self.role == SessionRole.OWNER

    @property
    def as_data(self) -> dict[str, Any]:
        """The values for the page's scripts."""
        return {"id": str(self.session.public_id), "role": self.role.word, "login": self.user.login}


@user_page
def view(request: HttpRequest, user: User, public_id: UUID) -> HttpResponse:
    """The page. `before`, `from`: an earlier part, without live updates; `turn`: the part with that turn."""
    seen = get_visible_session(public_id, user)
    session = seen.session
    context = {
        **_rows(request, seen),
        **_files(seen),
        "is_online": is_online(session.pk),
        "attached": load_attendance(session.pk).logins,
        "shares": _shares(seen),
        "share_roles": Share.Role.choices,
    }
    return render(request, "operators/view.html", context)


@user_part
def rows(request: HttpRequest, user: User, public_id: UUID) -> HttpResponse:
    """Only the lines, for the page's script, which loads them again whenever something happened."""
    seen = get_visible_session(public_id, user)
    return render(request, "operators/rows.html", _rows(request, seen))


@user_part
def files(request: HttpRequest, user: User, public_id: UUID) -> HttpResponse:
    """The list of files alone."""
    return render(request, "operators/files.html", _files(get_visible_session(public_id, user)))


def get_visible_session(public_id: UUID, user: User, at_least: SessionRole = SessionRole.VIEWER) -> VisibleSession:
    """The session of an address, for a user.

    Raises:
        Http404: the session is absent or hidden from the user, or the user's role is too low.
    """
    session = find_session(public_id, user.pk)
    if session is None or role_of(session) < at_least:
        raise Http404
    return VisibleSession(session, user, role_of(session))


def _rows(request: HttpRequest, seen: VisibleSession) -> dict[str, Any]:
    session_id = seen.session.pk
    page, missing = _find_page(request.GET, session_id)
    is_past = page.after is not None or "before" in request.GET or "from" in request.GET
    waiting = [] if is_past else [row_of_request(one) for one in permissions.pending(session_id)]
    context = {"before": page.before, "after": page.after, "is_past": is_past, "waiting": waiting}
    return {"seen": seen, "rows": build_rows(page.moments, session_id), "is_turn_missing": missing, **context}


def _find_page(query: Mapping[str, str], session_id: int) -> tuple[TimelinePage, bool]:
    """The part of a transcript that a query names; and True if the turn that it names is not in the transcript."""
    if "from" in query:
        return read_history_from(session_id, Position.read(query["from"]), ROWS), False
    newest = read_history(session_id, Position.read(query.get("before", "")), ROWS)
    turn = _find_turn(query.get("turn", ""), session_id)
    if turn is None or any(_asks(one.row, turn) for one in newest.moments):
        return newest, "turn" in query and turn is None
    start = find_turn_position(turn)
    return (newest, True) if start is None else (read_history_from(session_id, start, ROWS), False)


def _asks(row: Model, turn: Turn) -> bool:
    return isinstance(row, Event) and row.type == "prompt" and f'"{turn.chat_id}"' in row.payload


def _find_turn(name: str, session_id: int) -> Turn | None:
    """A turn of a session by its id, or by the chat id that its frames and webhooks have."""
    turns = Turn.objects.filter(session=session_id)
    if re.fullmatch(r"[0-9]{1,18}", name):
        return turns.filter(pk=int(name)).first()
    return turns.filter(chat_id=name).first() if 0 < len(name) <= 64 and name.isprintable() else None


def _files(seen: VisibleSession) -> dict[str, Any]:
    live = File.objects.live().filter(session=seen.session).select_related("uploader").order_by("-pk")
    found = list(live[: MAX_FILES + 1])
    return {"seen": seen, "files": found[:MAX_FILES], "has_more_files": len(found) > MAX_FILES}


def _shares(seen: VisibleSession) -> list[Share]:
    if not seen.is_owner:
        return []
    return list(Share.objects.filter(session=seen.session).select_related("user").order_by("pk")[:MAX_SHARES])


OwnerAction = Callable[[HttpRequest, VisibleSession], str]
NO_SUCH_LOGIN = "No user has the login {login}."
ALREADY_OWNER = "The session is theirs already."
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Number:
    """The number of rows of one kind, counted up to MAX_COUNTED."""

    name: str
    count: int

    @property
    def is_more(self) -> bool:
        """True if counting stopped before the end."""
        return self.count >= MAX_COUNTED


def _owner_action(act: OwnerAction) -> View[Any]:
    """A view for POSTs of the owner's forms: it calls `act`, shows its message and redirects to the session."""

    @user_post
    def target(request: HttpRequest, user: User, public_id: UUID) -> HttpResponse:
        seen = get_visible_session(public_id, user, SessionRole.OWNER)
        messages.success(request, act(request, seen))
        return HttpResponseRedirect(reverse("operator-view", args=[public_id]))

    return target


def _share(request: HttpRequest, seen: VisibleSession) -> str:
    login, role = request.POST.get("login", "").strip().removeprefix("@"), request.POST.get("role", "")
    user = User.objects.named(login)
    if user is None:
        return NO_SUCH_LOGIN.format(login=_shown(login))
    if user.pk == seen.session.owner_id:
        return ALREADY_OWNER
    if role not in Share.Role.values:
        return "Choose a role."
    try:
        share_session(seen.session, user, role, by=seen.user)
    except SessionGone:
        return "The session is gone."
    return f"Shared with @{user.login}, as {role}."


def _unshare(request: HttpRequest, seen: VisibleSession) -> str:
    login = request.POST.get("login", "")
    user = User.objects.named(login)
    if user is None or not unshare_session(seen.session, user):
        return f"It was not shared with {_shown(login)}."
    return f"@{user.login} no longer sees this session."


def _archive(request: HttpRequest, seen: VisibleSession) -> str:
    try:
        is_new, _ = archive_session(seen.session)
    except SessionGone:
        return "The session is gone."
    return "Archived. It comes back when its agent does." if is_new else "It was archived already."


share, unshare, archive = _owner_action(_share), _owner_action(_unshare), _owner_action(_archive)


@user_form
def delete(request: HttpRequest, user: User, public_id: UUID) -> HttpResponse:
    """The page with the numbers of rows that would be deleted with the session; a POST deletes it for good."""
    seen = get_visible_session(public_id, user, SessionRole.OWNER)
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


def _shown(login: str) -> str:
    return login[:64].replace("\0", "") or "this login"


def _numbers(session: Session) -> Iterator[Number]:
    """The numbers of a session's rows, kind by kind."""
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
        yield Number(name, rows[:MAX_COUNTED].count())


def _bytes_of_files(session: Session) -> int:
    """The size of the session's live files; bytes that files of other sessions share stay when it is deleted."""
    total = File.objects.live().filter(session=session).aggregate(total=Sum("size"))["total"]
    return int(total or 0)


HOME = "desk/sessions/<uuid:public_id>"

urlpatterns = [
    path(HOME, view, name="operator-view"),
    path(f"{HOME}/rows", rows, name="operator-rows"),
    path(f"{HOME}/files", files, name="operator-files"),
    path(f"{HOME}/share", share, name="operator-share"),
    path(f"{HOME}/unshare", unshare, name="operator-unshare"),
    path(f"{HOME}/archive", archive, name="operator-archive"),
    path(f"{HOME}/delete", delete, name="operator-delete"),
]
