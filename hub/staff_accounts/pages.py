"""The page of an account for the staff, with a switch for each thing that the account has."""

from collections.abc import Callable, Mapping

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse

from accounts import access, groups
from accounts.authn import presented_by
from accounts.browser import device_name
from accounts.errors import SignInRefused
from accounts.models import Membership, User
from accounts.oauth.signin_methods import list_signin_methods
from accounts.pages import staff_form
from agents.core.halt_rules import HaltSubject, halt_by_staff, lift_by_staff
from agents.models import Halt
from hub.staff_accounts.overview import (
    SESSION,
    count_limits,
    find_clients,
    find_halts,
    find_memberships,
    find_sessions,
    find_tokens,
    name_kind,
)
from kit.filters import page_of
from kit.ids import read_row_id

ON_A_PAGE = 50
Act = Callable[[HttpRequest, User, User], str]


@staff_form
def account(request: HttpRequest, staff: User, login: str) -> HttpResponse:
    """One account; a POST changes what its field `action` names."""
    user = User.objects.named(login)
    if user is None:
        raise Http404
    if request.method != "POST":
        return _account_page(request, staff, user)
    act = ACTIONS.get(request.POST.get("action", ""))
    if act is None:
        raise Http404
    try:
        messages.success(request, act(request, user, staff))
    except SignInRefused as refused:
        return _account_page(request, staff, user, error=str(refused), status=refused.status)
    if user == staff and not User.objects.filter(pk=staff.pk, is_staff=True).exists():
        return HttpResponseRedirect(reverse("home"))  # this page is absent for them now
    return HttpResponseRedirect(request.get_full_path())


def _account_page(
    request: HttpRequest, staff: User, user: User, *, error: str = "", status: int = 200
) -> HttpResponse:
    sessions = page_of(request, find_sessions(user), ON_A_PAGE, "sessions")
    tokens = page_of(request, find_tokens(user), ON_A_PAGE, "tokens")
    context = {
        "account": user,
        "is_self": user == staff,
        "kind": name_kind(user),
        "methods": list_signin_methods(user),
        "current": _current_digest(request),
        "sessions": sessions,
        "devices": [(one, device_name(one.user_agent)) for one in sessions],
        "tokens": tokens,
        "clients": page_of(request, find_clients(user), ON_A_PAGE, "clients"),
        "memberships": page_of(request, find_memberships(user), ON_A_PAGE, "groups"),
        "roles": Membership.Role.values,
        "limits": count_limits(user),
        "halted": {one.kind: one for one in find_halts(user)},
        "error": error,
    }
    return render(request, "staff_account.html", context, status=status)


def _current_digest(request: HttpRequest) -> str:
    token = presented_by(request)
    return token.digest if token else ""


def _row_id(request: HttpRequest) -> int:
    found = read_row_id(request.POST.get("id", ""))
    if found is None:
        raise Http404
    return found


def _current_id(request: HttpRequest, user: User) -> int | None:
    """The sign-in of this request, if it is the user's: it ends by signing out."""
    found: int | None = (
        user.credentials.filter(digest=_current_digest(request)).values_list("pk", flat=True).first()
    )
    return found


def _set_access(field: str, value: bool, text: str) -> Act:
    def act(request: HttpRequest, user: User, staff: User) -> str:
        access.change_access(user, {field: value}, by=staff)
        return text

    return act


def _end_sessions(request: HttpRequest, user: User, staff: User) -> str:
    keeps = _current_id(request, user)
    ended = access.revoke_credentials(user, Q(kind=SESSION), by=staff, keeps=keeps)
    return f"Ended: {ended} sign-ins. Their sockets and streams close within seconds."


def _revoke_tokens(request: HttpRequest, user: User, staff: User) -> str:
    ended = access.revoke_tokens(user, by=staff)
    return f"Ended: {ended} tokens and programs. Their sockets and streams close within seconds."


def _revoke(request: HttpRequest, user: User, staff: User) -> str:
    keeps = _current_id(request, user)
    ended = access.revoke_credentials(user, Q(pk=_row_id(request)), by=staff, keeps=keeps)
    return "Revoked." if ended else "That had ended already, or is the sign-in that you use."


def _end_client(request: HttpRequest, user: User, staff: User) -> str:
    ended = access.end_clients(user, Q(pk=_row_id(request)), by=staff)
    return "Signed out." if ended else "That program was signed out already."


def _change_role(request: HttpRequest, user: User, staff: User) -> str:
    membership, role = _get_membership(request, user), request.POST.get("role", "")
    if role not in Membership.Role.values:
        raise Http404
    groups.change_role(membership.group, user, role, by=staff)
    return f"@{user.login} is {role} of @{membership.group.slug}."


def _leave(request: HttpRequest, user: User, staff: User) -> str:
    membership = _get_membership(request, user)
    groups.remove_member(membership.group, user, by=staff)
    return f"@{user.login} is not in @{membership.group.slug} any more."


def _get_membership(request: HttpRequest, user: User) -> Membership:
    found = find_memberships(user).filter(pk=_row_id(request)).first()
    if found is None:
        raise Http404
    return found


def _halt(kind: Halt.Kind, text: str) -> Act:
    def act(request: HttpRequest, user: User, staff: User) -> str:
        halt_by_staff(HaltSubject(kind, user=user), by=staff)
        return text

    return act


def _lift(kind: Halt.Kind, text: str) -> Act:
    def act(request: HttpRequest, user: User, staff: User) -> str:
        lift_by_staff(find_halts(user).filter(kind=kind), by=staff)
        return text

    return act


ACTIONS: Mapping[str, Act] = {
    "suspend": _set_access("is_active", False, "Suspended. Sockets and streams close within seconds."),
    "reinstate": _set_access("is_active", True, "Reinstated."),
    "give-staff": _set_access("is_staff", True, "Now a member of the staff."),
    "take-staff": _set_access("is_staff", False, "No member of the staff any more."),
    "end-sessions": _end_sessions,
    "revoke-tokens": _revoke_tokens,
    "revoke": _revoke,
    "end-client": _end_client,
    "role": _change_role,
    "leave": _leave,
    "halt-asks": _halt(Halt.Kind.CALLER, "Halted: the hub refuses what this account asks."),
    "resume-asks": _lift(Halt.Kind.CALLER, "This account may ask again."),
    "halt-agents": _halt(Halt.Kind.OWNER, "Halted: agents and sessions of this account answer nothing."),
    "resume-agents": _lift(Halt.Kind.OWNER, "Agents and sessions of this account answer again."),
}

urlpatterns = [path("staff/accounts/<str:login>", account, name="staff-account")]
