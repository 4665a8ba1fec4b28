"""Pages of groups: one's groups, one group, and joining a group by a link."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from accounts import group_invitations, groups
from accounts.acting import act_for
from accounts.errors import SignInRefused, TooFast
from accounts.group_invitations import InvitedToGroup, NoGroupInvitation
from accounts.models import Credential, Group, GroupInvitation, Membership, User
from accounts.pages import signed_in, user_form, user_post
from accounts.throttle import check_address
from accounts.tokens import Minted, mint_app, mint_channel
from agents.core.directory import UnknownLogin, get_users_by_login
from agents.models import Agent, CallerBudget
from kit.clock import db_now
from kit.filters import page_of
from kit.ids import read_row_id

Role = Membership.Role
ON_A_PAGE = 50
LISTED = 100
MAX_TOKEN_NAME_CHARS = 100
MINTS: Mapping[str, Callable[..., Minted]] = {"app": mint_app, "channel": mint_channel}
New = InvitedToGroup | Minted | None


class GroupFormRefused(Exception):
    """A form of the page is refused; the text is for the maintainer."""


@user_form
def my_groups(request: HttpRequest, user: User) -> HttpResponse:
    """The groups of the signed-in user; a POST creates one."""
    error = ""
    if request.method == "POST":
        slug, name = request.POST.get("slug", "").strip().removeprefix("@"), request.POST.get("name", "")
        try:
            group = groups.create_group(slug, name, made_by=user)
            return HttpResponseRedirect(reverse("group", args=[group.slug]))
        except SignInRefused as refused:
            error = f"{_sentence(refused)}"
    own = Membership.objects.filter(user=user).select_related("group__account").order_by("group__account__login")
    page = page_of(request, own, ON_A_PAGE)
    context = {"page": page, "error": error, "typed": request.POST if error else {}}
    return render(request, "groups.html", context, status=400 if error else 200)


@user_form
def group(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    """One group; a POST of a maintainer changes the group, and each member can leave."""
    membership = _find_membership(user, slug)
    if request.method != "POST":
        return _group_page(request, membership)
    action = request.POST.get("action", "")
    if action == "leave":
        return _leave(request, membership)
    act = ACTIONS.get(action)
    if act is None or membership.role != Role.MAINTAINER:
        raise Http404
    try:
        made = act(request, membership.group, user)
    except (SignInRefused, UnknownLogin, GroupFormRefused) as refused:
        return _group_page(request, membership, error=_sentence(refused), action=action)
    if made is not None:
        return _group_page(request, membership, made=made)
    return HttpResponseRedirect(request.get_full_path())


@user_form
def join(request: HttpRequest, user: User, token: str) -> HttpResponse:
    """Join a group by its link, after a look at what the link is for."""
    try:
        check_address(request, "invitation")
        if request.method == "POST":
            joined = group_invitations.join_group(token, user)
            return HttpResponseRedirect(reverse("group", args=[joined.group.slug]))
        return render(request, "group_join.html", {"invitation": group_invitations.find_group_invitation(token)})
    except NoGroupInvitation as gone:
        return render(request, "group_join.html", {"error": str(gone)}, status=404)
    except TooFast as fast:
        return render(request, "group_join.html", {"error": _sentence(fast)}, status=429)
    except SignInRefused as refused:
        return render(request, "group_join.html", {"error": _sentence(refused)}, status=refused.status)


@user_post
def act(request: HttpRequest, user: User) -> HttpResponse:
    """Make this browser act for a group that the user maintains, or, without a group, for the user again."""
    caller, slug = signed_in(request), request.POST.get("group", "")
    if caller is None:
        raise Http404
    wanted = _find_membership(user, slug).group if slug else None
    if not act_for(caller, wanted):
        raise Http404
    if wanted is not None:
        messages.success(request, f"The desk and the webhooks of this browser are now those of @{wanted.slug}.")
    return HttpResponseRedirect(reverse("desk") if wanted else reverse("groups"))


def _find_membership(user: User, slug: str) -> Membership:
    """The user's membership in the group.

    Raises:
        Http404: there is no such group, or the user is not in it.
    """
    if not slug.isprintable():
        raise Http404
    rows = Membership.objects.filter(user=user, group__account__login__iexact=slug)
    found = rows.select_related("group__account", "user").first()
    if found is None:
        raise Http404
    return found


def _group_page(
    request: HttpRequest, membership: Membership, *, error: str = "", action: str = "", made: New = None
) -> HttpResponse:
    of_group, account = membership.group, membership.group.account
    is_maintainer = membership.role == Role.MAINTAINER
    audits = membership.role in (Role.MAINTAINER, Role.AUDITOR)
    members = of_group.memberships.select_related("user", "added_by").order_by("user__login")
    budgets = CallerBudget.objects.filter(caller=account, daily_budget__isnull=False)
    seen = Agent.objects.visible_to(membership.user).values("pk")
    shown = budgets.filter(agent__in=seen).select_related("agent")
    own = Agent.objects.kept().owned_by(account)
    if not audits:
        own = own.published()
    context: dict[str, Any] = {
        "group": of_group,
        "account": account,
        "membership": membership,
        "is_maintainer": is_maintainer,
        "audits": audits,
        "roles": Role.choices,
        "page": page_of(request, members, ON_A_PAGE),
        "agents": page_of(request, own.order_by("handle_key"), ON_A_PAGE, "agents"),
        "budgets": page_of(request, shown.order_by("agent__handle_key"), ON_A_PAGE, "budgets"),
        "today": db_now().date(),
        "error": error,
        "action": action,
        "typed": request.POST if error else {},
        "invited": made if isinstance(made, InvitedToGroup) else None,
        "minted": made if isinstance(made, Minted) else None,
    }
    if audits:
        about = ContentType.objects.get_for_model(Group)
        acts = LogEntry.objects.filter(content_type=about, object_id=str(of_group.pk))
        context["acts"] = acts.select_related("user").order_by("-action_time", "-pk")[:LISTED]
    if is_maintainer:
        links = GroupInvitation.objects.open().filter(group=of_group)
        context["links"] = links.select_related("made_by").order_by("-created_at")[:LISTED]
        live = Credential.objects.live().filter(user=account).select_related("minted_by")
        context["tokens"] = page_of(request, live.order_by("-created_at", "-pk"), ON_A_PAGE, "tokens")
    return render(request, "group.html", context, status=400 if error else 200)


def _leave(request: HttpRequest, membership: Membership) -> HttpResponse:
    try:
        groups.remove_member(membership.group, membership.user, by=membership.user)
    except SignInRefused as refused:
        return _group_page(request, membership, error=_sentence(refused), action="leave")
    messages.success(request, f"You left @{membership.group.slug}.")
    return HttpResponseRedirect(reverse("groups"))


def _add(request: HttpRequest, of_group: Group, by: User) -> None:
    login = request.POST.get("login", "").strip().removeprefix("@")
    [user] = get_users_by_login([login])
    groups.add_member(of_group, user, _read_role(request), by=by)
    messages.success(request, f"@{user.login} is in the group.")


def _change_role(request: HttpRequest, of_group: Group, by: User) -> None:
    user = _read_member(request, of_group)
    groups.change_role(of_group, user, _read_role(request), by=by)
    messages.success(request, f"@{user.login} is {_read_role(request)} now.")


def _remove(request: HttpRequest, of_group: Group, by: User) -> None:
    user = _read_member(request, of_group)
    groups.remove_member(of_group, user, by=by)
    messages.success(request, f"@{user.login} left the group. What the group allowed ends within 2 seconds.")


def _rename(request: HttpRequest, of_group: Group, by: User) -> None:
    groups.rename_group(of_group, request.POST.get("name", ""), by=by)
    messages.success(request, "Renamed.")


def _invite(request: HttpRequest, of_group: Group, by: User) -> InvitedToGroup:
    return group_invitations.invite_to_group(of_group, _read_role(request), by=by)


def _revoke_link(request: HttpRequest, of_group: Group, by: User) -> None:
    row_id = read_row_id(request.POST.get("id", ""))
    if row_id is None or not group_invitations.revoke_group_invitation(of_group, row_id, by=by):
        raise GroupFormRefused("the link is not open any more")
    messages.success(request, "The link is no longer valid.")


def _mint(request: HttpRequest, of_group: Group, by: User) -> Minted:
    name, mint = request.POST.get("name", "").replace("\0", "").strip(), MINTS.get(request.POST.get("kind", ""))
    if mint is None or not 0 < len(name) <= MAX_TOKEN_NAME_CHARS:
        raise GroupFormRefused(f"give the token a name of 1 to {MAX_TOKEN_NAME_CHARS} characters")
    make = partial(mint, name=name, user_agent=request.headers.get("User-Agent", ""))
    return groups.mint_for_group(of_group, by, make)


def _revoke_token(request: HttpRequest, of_group: Group, by: User) -> None:
    own = Credential.objects.filter(user=of_group.account, pk=read_row_id(request.POST.get("id", "")) or 0)
    shown = [one.shown_prefix for one in own]
    if not shown or not own.revoke():
        raise GroupFormRefused("the token is not valid any more")
    groups.record_group_act(by, of_group, f"revoked the token {shown[0]}")
    messages.success(request, "Revoked. The hub closes the connections that use it.")


def _read_role(request: HttpRequest) -> str:
    role = request.POST.get("role", "")
    if role not in Role.values:
        raise GroupFormRefused("choose a role")
    return role


def _read_member(request: HttpRequest, of_group: Group) -> User:
    row_id = read_row_id(request.POST.get("id", "")) or 0
    found = of_group.memberships.filter(pk=row_id).select_related("user").first()
    if found is None:
        raise GroupFormRefused("this user is not in the group any more")
    return found.user


def _sentence(refused: Exception) -> str:
    text = str(refused)
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


ACTIONS: Mapping[str, Callable[[HttpRequest, Group, User], New]] = {
    "add": _add,
    "role": _change_role,
    "remove": _remove,
    "rename": _rename,
    "invite": _invite,
    "revoke-link": _revoke_link,
    "mint": _mint,
    "revoke-token": _revoke_token,
}
