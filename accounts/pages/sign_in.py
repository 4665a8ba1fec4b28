"""Pages by which a browser signs in and out."""

from django.contrib import messages
from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts import settings
from accounts.browser import own_path, sign_in, sign_out
from accounts.error_responses import json_error
from accounts.errors import SignInRefused, TooFast
from accounts.models import User
from accounts.oauth import attempts
from accounts.oauth.attempts import browser_key, keep_key, sound_key
from accounts.oauth.signin_methods import find_signin_methods
from accounts.passkeys import check_sign_in, sign_in_options
from accounts.signup import LOGIN
from accounts.throttle import check_address, check_passwords
from accounts.tokens import (
    BAD_LOGIN,
    BadLogin,
    get_or_create_local_user,
)

PASSKEY = "passkey"
MAX_PASSWORD_CHARS = 1024
BAD_PASSWORD = "Login and password do not go together, or the account is suspended."  # noqa: S105  it is a sentence
IS_GROUP = "{login} is a group: sign in as yourself, and act for the group on its page."
SUSPENDED = "{login} is suspended. An operator can lift that in the admin."


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def signin(request: HttpRequest) -> HttpResponse:
    """Offer the sign-in methods that are set up; a POST signs in by a login alone, where DEV_LOGIN allows it."""
    if request.method != "POST" or not find_signin_methods().development:
        return _signin_page(request)
    login = request.POST.get("login", "").strip()
    try:
        user = get_or_create_local_user(login)
    except BadLogin:
        return _signin_page(request, login=login, error=BAD_LOGIN, status=400)
    if user.is_group:
        return _signin_page(request, login=login, error=IS_GROUP.format(login=user.login), status=403)
    if not user.is_active:
        return _signin_page(request, login=login, error=SUSPENDED.format(login=user.login), status=403)
    return _signed_in(request, user, request.POST.get("next"))


@never_cache
@sensitive_post_parameters("password")
@require_POST
def signin_password(request: HttpRequest) -> HttpResponse:
    """Sign in with a login and a password. Successful attempts count for the rate limit, too."""
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
    """Revoke this browser's session, so that a copy of its cookie is refused, too."""
    response = HttpResponseRedirect(reverse("home"))
    sign_out(request, response)
    messages.success(request, "You are signed out.")
    return response


def _signed_in(request: HttpRequest, user: User, next_path: str | None) -> HttpResponse:
    response = HttpResponseRedirect(own_path(next_path))
    sign_in(request, response, user)
    return response


def _signin_page(request: HttpRequest, *, status: int = 200, **context: str) -> HttpResponse:
    ways = find_signin_methods()
    next_path = own_path(request.POST.get("next") or request.GET.get("next"))
    shown = {"ways": ways, "next_path": next_path, "github_url": settings.GITHUB_URL, **context}
    return render(request, "signin.html", shown, status=503 if status == 200 and not ways.is_any else status)
