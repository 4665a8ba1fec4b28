"""The page of the user's own account: its sessions, tokens, clients and sign-in methods."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import capfirst

from accounts import settings, tokens
from accounts.api.account import OVERLAP_S, NewAppToken
from accounts.authn import TokenScope, presented_by
from accounts.browser import device_name
from accounts.models import MAX_KEPT_DAYS, USERS_KINDS, Credential, User
from accounts.oauth.signin_methods import list_signin_methods
from accounts.pages import user_form, user_post
from accounts.quotas import QuotaExceeded
from accounts.rest import CANNOT_SIGN
from accounts.signing import NoKey
from accounts.tokens import (
    JWT_FORMAT,
    MAX_JWT_LIFETIME,
    Minted,
    NoSuchSeat,
    mint_app,
    mint_channel,
)
from kit.clock import db_now

Kind = Credential.Kind
NAME_CHARS = 100
REUSE_SHOWN = timedelta(days=30)
UNITS_S = {"days": 24 * 3600, "hours": 3600}
UNSOUND = "Give a whole number and an agent as owner/slug, or nothing; for one agent alone: ask, read or connect."
UNSOUND_JWT = f"A signed token expires: give a time of at most {MAX_JWT_LIFETIME.days} days."
MINTS: Mapping[str, Callable[..., Minted]] = {
    Kind.CHANNEL: mint_channel,
    Kind.APP: mint_app,
    JWT_FORMAT: mint_app,
}


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One line of the page."""

    credential: Credential
    is_current: bool

    @property
    def device(self) -> str:
        """The program or browser for which the token was made."""
        return device_name(self.credential.user_agent)

    @property
    def can_be_replaced(self) -> bool:
        """True if `rotate` can replace the token."""
        return self.credential.kind in USERS_KINDS


@user_form
def account(request: HttpRequest, user: User) -> HttpResponse:
    """Sessions and tokens; a POST mints a channel or app token, and shows its text once."""
    if request.method != "POST":
        return _account_page(request, user)
    name = request.POST.get("name", "").replace("\0", "").strip()
    if not 0 < len(name) <= NAME_CHARS:
        return _account_page(request, user, error=f"Give it a name of 1 to {NAME_CHARS} characters.", status=400)
    mint = MINTS.get(request.POST.get("kind", Kind.CHANNEL))
    if mint is None:
        return _account_page(
            request, user, error="Say what it is for: an agent, or a program that asks.", status=400
        )
    typed = _read_form(request, name)
    body = NewAppToken(data=typed)
    if not body.is_valid():
        is_late_jwt = "format" in typed and body.errors.keys() == {"expires_in"}
        return _account_page(request, user, error=UNSOUND_JWT if is_late_jwt else UNSOUND, status=400)
    limits = body.limits()
    if mint is mint_channel and (limits.scopes or limits.only_agent):
        return _account_page(
            request, user, error="Scopes and an agent to ask are for a program's token.", status=400
        )
    try:
        minted = mint(user, name, user_agent=request.headers.get("User-Agent", ""), limits=limits)
    except (QuotaExceeded, NoSuchSeat, NoKey) as refusal:
        return _refused(request, user, refusal)
    return _account_page(request, user, minted=minted)


def _read_form(request: HttpRequest, name: str) -> dict[str, object]:
    """The fields of the form as the body of a mint; empty fields are left out."""
    time, agent = request.POST.get("expires", "").strip(), request.POST.get("agent", "").strip()
    unit_s = UNITS_S.get(request.POST.get("unit", "days"))
    typed: dict[str, object] = {"name": name}
    if request.POST.get("kind") == JWT_FORMAT:
        typed["format"] = JWT_FORMAT
    if scopes := request.POST.getlist("scope"):
        typed["scopes"] = scopes
    if agent:
        typed["agent"] = agent
    if time:
        is_number = time.isascii() and time.isdecimal() and len(time) <= 5
        typed["expires_in"] = int(time) * unit_s if unit_s and is_number else time
    return typed


def _refused(request: HttpRequest, user: User, refusal: QuotaExceeded | NoSuchSeat | NoKey) -> HttpResponse:
    if isinstance(refusal, NoKey):
        return _account_page(request, user, error=f"{capfirst(CANNOT_SIGN)}.", status=503)
    status = 400 if isinstance(refusal, NoSuchSeat) else 429
    return _account_page(request, user, error=f"{capfirst(str(refusal))}.", status=status)


@user_post
def rotate(request: HttpRequest, user: User, credential_id: int) -> HttpResponse:
    """Replace a token of the user, and show the new text once; the old token stays valid for an hour."""
    old = tokens.find_replaceable(user, credential_id)
    if old is None:
        return HttpResponseRedirect(reverse("account"))
    overlap, agent = timedelta(seconds=OVERLAP_S), request.headers.get("User-Agent", "")
    try:
        return _account_page(request, user, minted=tokens.rotate(old, overlap=overlap, user_agent=agent))
    except (QuotaExceeded, NoSuchSeat, NoKey) as refusal:
        return _refused(request, user, refusal)


@user_post
def revoke(request: HttpRequest, user: User, credential_id: int) -> HttpResponse:
    """Revoke a session or token of the user, except the current session, which ends by signing out."""
    own = user.credentials.filter(pk=credential_id).exclude(digest=_current_digest(request))
    if own.revoke():
        messages.success(request, "Revoked. The hub has closed the connections that used it.")
    return HttpResponseRedirect(reverse("account"))


@user_post
def revoke_client(request: HttpRequest, user: User, grant_id: int) -> HttpResponse:
    """Sign a client out: revoke its refresh token and its access tokens."""
    if user.client_grants.filter(pk=grant_id).revoke():
        messages.success(request, "Signed out. The hub has closed the connections of that program.")
    return HttpResponseRedirect(reverse("account"))


@user_post
def retention(request: HttpRequest, user: User) -> HttpResponse:
    """Set how long questions to the user's agents are kept; an empty field sets the hub's default."""
    typed = request.POST.get("days", "").strip()
    is_number = typed.isascii() and typed.isdecimal() and len(typed) <= 5 and 1 <= int(typed) <= MAX_KEPT_DAYS
    if typed and not is_number:
        return _account_page(
            request, user, days_error=f"Give a number from 1 to {MAX_KEPT_DAYS}, or nothing.", status=400
        )
    user.questions_kept_days = int(typed) if typed else None
    user.save(update_fields=["questions_kept_days"])
    messages.success(request, "Saved. The hub blanks older questions and answers within some hours.")
    return HttpResponseRedirect(reverse("account"))


def _current_digest(request: HttpRequest) -> str:
    """The digest of the session of this request."""
    token = presented_by(request)
    return token.digest if token else ""


def _account_page(
    request: HttpRequest,
    user: User,
    *,
    minted: Minted | None = None,
    error: str = "",
    days_error: str = "",
    status: int = 200,
) -> HttpResponse:
    live, current = user.credentials.live().order_by("-created_at", "-pk"), _current_digest(request)
    connecting = minted.token if minted and minted.credential.kind == Kind.CHANNEL else ""
    rows = [TokenRow(one, is_current=one.digest == current) for one in live]
    context = {
        "me": user,
        "ways_in": ", ".join(one.name for one in list_signin_methods(user)),
        "sessions": [row for row in rows if row.credential.kind == Kind.SESSION],
        "tokens": [row for row in rows if row.credential.kind != Kind.SESSION and row.credential.grant_id is None],
        "clients": user.client_grants.live().order_by("-created_at", "-pk"),
        "reused": user.client_grants.filter(reused_at__gt=db_now() - REUSE_SHOWN).order_by("-reused_at"),
        "minted": minted,
        "snippet": mcp_json(connecting or "ck_live_…"),
        "is_filled": bool(connecting),
        "error": error,
        "scopes": list(TokenScope),
        "typed": request.POST if error else {},
        "chosen_scopes": request.POST.getlist("scope") if error else [],
        "jwt_days": MAX_JWT_LIFETIME.days,
        "days_error": days_error,
        "kept_days": settings.QUESTIONS_KEPT_DAYS,
        "most_days": MAX_KEPT_DAYS,
    }
    return render(request, "account.html", context, status=status)


def mcp_json(token: str) -> str:
    """The `.mcp.json` of a project whose coding session becomes an agent of this hub."""
    hub = settings.PUBLIC_URL.replace("http", "ws", 1)
    env = {"CLAWBORRATOR_HUB_URL": hub, "CLAWBORRATOR_TOKEN": token}
    server = {"command": "npx", "args": ["-y", "clawborrator-mcp"], "env": env}
    return json.dumps({"mcpServers": {"clawborrator": server}}, indent=2, ensure_ascii=False)
