"""The pages where a signed-in user allows an app, a command line, or a device whose code they type."""

import re
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse

from accounts import settings
from accounts.errors import AccessDenied, SignInRefused, TooFast
from accounts.middleware import PAGE_POLICY
from accounts.models import User
from accounts.oauth import clients, grants
from accounts.oauth.clients import AuthorizationRequest
from accounts.oauth.grants import Purpose
from accounts.pages import user_form
from accounts.throttle import check_address, check_code_guesses

NO_SUCH_CODE = "No device waits for this code. It may have run out: codes last 10 minutes."
PARAMETERS = (
    "redirect_uri", "state", "code_challenge", "code_challenge_method", "app_name", "machine_id",
    "client_id", "response_type", "scope", "resource",
)  # fmt: skip


@user_form
def consent(request: HttpRequest, user: User) -> HttpResponse:
    """Allow or deny an app or a command line; it gets the answer at its redirect address."""
    given = request.POST if request.method == "POST" else request.GET
    try:
        wanted = _read(given)
    except SignInRefused as refused:
        context = {"title": "This program asks wrongly", "text": str(refused), "status": 400}
        return render(request, "errors/page.html", context, status=400)
    if request.method != "POST":
        context = {
            "app_name": wanted.app_name,
            "is_client": bool(wanted.client_digest),
            "scopes": wanted.scopes,
            "may_refresh": wanted.may_refresh,
            "home": urlsplit(wanted.redirect_uri).netloc,
            "hidden": {name: given[name] for name in PARAMETERS if name in given},
        }
        return _leading_to(wanted.redirect_uri, render(request, "consent.html", context))
    if request.POST.get("decision") == "allow":
        answer = {"code": grants.issue_code(user, _purpose_of(wanted), wanted)}
    else:
        answer = {"error": AccessDenied.code}
    if wanted.client_digest:
        answer["iss"] = settings.PUBLIC_URL  # RFC 9207
    back = f"{wanted.redirect_uri}?{urlencode(answer | {'state': wanted.state})}"
    return _leading_to(wanted.redirect_uri, HttpResponseRedirect(back))


def _read(given: QueryDict) -> AuthorizationRequest:
    if "client_id" in given:
        return clients.read_client(given)
    is_app = "app_name" in given
    return clients.read_app(given) if is_app else clients.read_cli(given)


def _purpose_of(wanted: AuthorizationRequest) -> Purpose:
    if wanted.client_digest:
        return Purpose.CLIENT
    return Purpose.APP if wanted.app_name else Purpose.CLI


@user_form
def device(request: HttpRequest, user: User) -> HttpResponse:
    """Type the code that a device shows, see the app's name, and allow or deny the app."""
    if request.method != "POST":
        return _code_form(request, request.GET.get("user_code", ""))
    typed = request.POST.get("user_code", "")
    try:
        check_code_guesses(user.pk)
        check_address(request, "guess")
    except TooFast as fast:
        return _code_form(request, typed, str(fast), status=429)
    grant = grants.find_device_grant(typed)
    if grant is None:
        return _code_form(request, typed, NO_SUCH_CODE, status=400)
    decision = request.POST.get("decision", "")
    if decision not in ("allow", "deny"):
        return render(request, "device_consent.html", {"app_name": grant.app_name, "user_code": typed})
    if not grants.decide_device_grant(grant, user, allow=decision == "allow"):
        return _code_form(request, typed, NO_SUCH_CODE, status=400)
    said = "is allowed. You can go back to the device." if decision == "allow" else "was turned away."
    messages.success(request, f"{grant.app_name} {said}")
    return HttpResponseRedirect(reverse("account"))


def _code_form(request: HttpRequest, typed: str, error: str = "", *, status: int = 200) -> HttpResponse:
    shown = re.sub(r"[^A-Za-z-]", "", typed)[:20]
    return render(request, "device.html", {"user_code": shown, "error": error}, status=status)


def _leading_to(address: str, response: HttpResponse) -> HttpResponse:
    """Allow the checked address's origin in `form-action`, which also covers redirects after a form."""
    parts = urlsplit(address)
    # A CSP source cannot be an IPv6 address.
    home = "http:" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}"
    policy = PAGE_POLICY.replace("form-action 'self'", f"form-action 'self' {home}")
    response["Content-Security-Policy"] = policy
    return response
