"""Pages about oneself: signing in and out with a browser, and the account with its sessions and tokens."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.contrib import messages
from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import rotate_token
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts import settings, tokens
from accounts.api import OVERLAP_S, NewAppToken
from accounts.authn import Caller, TokenScope
from accounts.browser import device_name, own_path, sign_in, sign_out
from accounts.error_pages import json_error
from accounts.errors import SignInRefused, TooFast
from accounts.models import MAX_KEPT_DAYS, USERS_KINDS, Credential, User
from accounts.oauth import attempts
from accounts.oauth.attempts import browser_key, keep_key, sound_key
from accounts.oauth.pages import require_caller
from accounts.oauth.signin_methods import find_signin_methods, list_signin_methods
from accounts.passkeys import check_sign_in, sign_in_options
from accounts.quotas import QuotaExceeded
from accounts.rest import CANNOT_SIGN
from accounts.signing import NoKey
from accounts.signup import LOGIN
from accounts.throttle import check_address, check_passwords
from accounts.tokens import (
    BAD_LOGIN,
    JWT_FORMAT,
    MAX_JWT_LIFETIME,
    BadLogin,
    Minted,
    NoSuchSeat,
    get_or_create_local_user,
    mint_app,
    mint_channel,
)
from kit.clock import db_now

PASSKEY = "passkey"
MAX_PASSWORD_CHARS = 1024
BAD_PASSWORD = "Login and password do not go together, or the account is suspended."  # noqa: S105  it is a sentence
SUSPENDED = "{login} is suspended. An operator can lift that in the admin."


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def signin(request: HttpRequest) -> HttpResponse:
    """Every way to sign in that is set up; a POST is of the development sign-in, where DEV_LOGIN allows it."""
    if request.method != "POST" or not find_signin_methods().development:
        return _signin_page(request)
    login = request.POST.get("login", "").strip()
    try:
        user = get_or_create_local_user(login)
    except BadLogin:
        return _signin_page(request, login=login, error=BAD_LOGIN, status=400)
    if not user.is_active:
        return _signin_page(request, login=login, error=SUSPENDED.format(login=user.login), status=403)
    return _signed_in(request, user, request.POST.get("next"))


@never_cache
@sensitive_post_parameters("password")
@require_POST
def signin_password(request: HttpRequest) -> HttpResponse:
    """Sign in with a login and a password. Each try counts, a good one too."""
    login, password = request.POST.get("login", "").strip(), request.POST.get("password", "")
    try:
        check_address(request, "password")
        check_passwords(request, login)
    except TooFast as fast:
        return _signin_page(request, login=login, password_error=f"{str(fast).capitalize()}.", status=429)
    is_sound = LOGIN.match(login) and len(password) <= MAX_PASSWORD_CHARS and "\0" not in password
    user = authenticate(request, username=login, password=password) if is_sound else None
    if not isinstance(user, User):
        return _signin_page(request, login=login, password_error=BAD_PASSWORD, status=400)
    return _signed_in(request, user, request.POST.get("next"))


@never_cache
@require_POST
def passkey_options(request: HttpRequest) -> HttpResponse:
    """The options with which a browser signs with a passkey: `{state, options}`."""
    try:
        check_address(request, "start")
    except TooFast as fast:
        return json_error(429, fast.code, str(fast))
    key = sound_key(request)
    started = attempts.begin(key, provider=PASSKEY)
    response = JsonResponse({"state": started.state, "options": sign_in_options(started.state)})
    keep_key(response, key)
    return response


@never_cache
@require_POST
def signin_passkey(request: HttpRequest) -> HttpResponse:
    """Sign in with what a passkey signed."""
    try:
        check_address(request, "passkey")
        state = request.POST.get("state", "")
        attempts.finish_attempt(browser_key(request), state, provider=PASSKEY)
        user = check_sign_in(request.POST.get("credential", ""), state)
    except SignInRefused as refused:
        status = 429 if isinstance(refused, TooFast) else 400
        return _signin_page(request, passkey_error=f"{str(refused).capitalize()}.", status=status)
    return _signed_in(request, user, request.POST.get("next"))


@never_cache
@require_POST
def signout(request: HttpRequest) -> HttpResponse:
    """Revoke this browser's session; a copied cookie is worth nothing from now on."""
    response = HttpResponseRedirect(reverse("home"))
    sign_out(request, response)
    messages.success(request, "You are signed out.")
    return response


def _signed_in(request: HttpRequest, user: User, next_path: str | None) -> HttpResponse:
    response = HttpResponseRedirect(own_path(next_path))
    sign_in(request, response, user)
    rotate_token(request)
    return response


def _signin_page(request: HttpRequest, *, status: int = 200, **context: str) -> HttpResponse:
    ways = find_signin_methods()
    next_path = own_path(request.POST.get("next") or request.GET.get("next"))
    shown = {"ways": ways, "next_path": next_path, "github_url": settings.GITHUB_URL, **context}
    return render(request, "signin.html", shown, status=503 if status == 200 and not ways.is_any else status)


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
        """The program it was made for."""
        return device_name(self.credential.user_agent)

    @property
    def can_be_replaced(self) -> bool:
        """True if `rotate` makes another like it."""
        return self.credential.kind in USERS_KINDS


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@require_caller
def account(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Sessions and tokens; a POST mints a token, of either kind, and shows its text this once."""
    if request.method != "POST":
        return _account_page(request, caller)
    name = request.POST.get("name", "").replace("\0", "").strip()
    if not 0 < len(name) <= NAME_CHARS:
        return _account_page(request, caller, error=f"Give it a name of 1 to {NAME_CHARS} characters.", status=400)
    mint = MINTS.get(request.POST.get("kind", Kind.CHANNEL))
    if mint is None:
        return _account_page(
            request, caller, error="Say what it is for: an agent, or a program that asks.", status=400
        )
    typed = _read_form(request, name)
    body = NewAppToken(data=typed)
    if not body.is_valid():
        is_late_jwt = "format" in typed and body.errors.keys() == {"expires_in"}
        return _account_page(request, caller, error=UNSOUND_JWT if is_late_jwt else UNSOUND, status=400)
    limits = body.limits()
    if mint is mint_channel and (limits.scopes or limits.only_agent):
        return _account_page(
            request, caller, error="Scopes and an agent to ask are for a program's token.", status=400
        )
    try:
        minted = mint(caller.user, name, user_agent=request.headers.get("User-Agent", ""), limits=limits)
    except (QuotaExceeded, NoSuchSeat, NoKey) as refusal:
        return _refused(request, caller, refusal)
    return _account_page(request, caller, minted=minted)


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


def _refused(request: HttpRequest, caller: Caller, refusal: QuotaExceeded | NoSuchSeat | NoKey) -> HttpResponse:
    if isinstance(refusal, NoKey):
        return _account_page(request, caller, error=f"{capfirst(CANNOT_SIGN)}.", status=503)
    status = 400 if isinstance(refusal, NoSuchSeat) else 429
    return _account_page(request, caller, error=f"{capfirst(str(refusal))}.", status=status)


@never_cache
@require_POST
@require_caller
def rotate(request: HttpRequest, caller: Caller, credential_id: int) -> HttpResponse:
    """A token like one of one's own, shown this once; the old one stays good for an hour."""
    old = tokens.find_replaceable(caller.user, credential_id)
    if old is None:
        return HttpResponseRedirect(reverse("account"))
    overlap, agent = timedelta(seconds=OVERLAP_S), request.headers.get("User-Agent", "")
    try:
        return _account_page(request, caller, minted=tokens.rotate(old, overlap=overlap, user_agent=agent))
    except (QuotaExceeded, NoSuchSeat, NoKey) as refusal:
        return _refused(request, caller, refusal)


@never_cache
@require_POST
@require_caller
def revoke(request: HttpRequest, caller: Caller, credential_id: int) -> HttpResponse:
    """End one of one's own sessions or tokens; the session in use ends by signing out."""
    own = caller.user.credentials.filter(pk=credential_id).exclude(pk=caller.identity.credential_id)
    if own.revoke():
        messages.success(request, "Revoked. The hub has closed the connections that used it.")
    return HttpResponseRedirect(reverse("account"))


@never_cache
@require_POST
@require_caller
def revoke_client(request: HttpRequest, caller: Caller, grant_id: int) -> HttpResponse:
    """Sign a client out: its refresh token and its access tokens end."""
    if caller.user.client_grants.filter(pk=grant_id).revoke():
        messages.success(request, "Signed out. The hub has closed the connections of that program.")
    return HttpResponseRedirect(reverse("account"))


@never_cache
@require_POST
@require_caller
def retention(request: HttpRequest, caller: Caller) -> HttpResponse:
    """Say how long questions to one's agents are kept; an empty field leaves it to the hub."""
    typed = request.POST.get("days", "").strip()
    is_number = typed.isascii() and typed.isdecimal() and len(typed) <= 5 and 1 <= int(typed) <= MAX_KEPT_DAYS
    if typed and not is_number:
        return _account_page(
            request, caller, days_error=f"Give a number from 1 to {MAX_KEPT_DAYS}, or nothing.", status=400
        )
    caller.user.questions_kept_days = int(typed) if typed else None
    caller.user.save(update_fields=["questions_kept_days"])
    messages.success(request, "Saved. The hub blanks older questions and answers within some hours.")
    return HttpResponseRedirect(reverse("account"))


def _account_page(
    request: HttpRequest,
    caller: Caller,
    *,
    minted: Minted | None = None,
    error: str = "",
    days_error: str = "",
    status: int = 200,
) -> HttpResponse:
    live = caller.user.credentials.live().order_by("-created_at", "-pk")
    connecting = minted.token if minted and minted.credential.kind == Kind.CHANNEL else ""
    rows = [TokenRow(one, is_current=one.pk == caller.identity.credential_id) for one in live]
    context = {
        "me": caller.user,
        "ways_in": ", ".join(one.name for one in list_signin_methods(caller.user)),
        "sessions": [row for row in rows if row.credential.kind == Kind.SESSION],
        "tokens": [row for row in rows if row.credential.kind != Kind.SESSION and row.credential.grant_id is None],
        "clients": caller.user.client_grants.live().order_by("-created_at", "-pk"),
        "reused": caller.user.client_grants.filter(reused_at__gt=db_now() - REUSE_SHOWN).order_by("-reused_at"),
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
