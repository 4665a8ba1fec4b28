"""A browser's sign-in by the cookie `cw_session`, and the readable name of a browser or program."""

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import rotate_token
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from accounts import settings
from accounts.authn import COOKIE, presented_by
from accounts.models import Credential, User
from accounts.tokens import SESSION_LIFETIME, mint


def sign_in(request: HttpRequest, response: HttpResponse, user: User) -> None:
    """Set cookies for a new session and CSRF token, and revoke the session that the browser had before."""
    _revoke(request)
    agent = request.headers.get("User-Agent", "")
    minted = mint(user, Credential.Kind.SESSION, "browser sign-in", user_agent=agent, source=Credential.Source.WEB)
    response.set_cookie(
        COOKIE,
        minted.token,
        max_age=SESSION_LIFETIME,
        path=settings.SESSION_COOKIE_PATH,
        httponly=True,
        samesite="Lax",
        secure=settings.IS_HTTPS,
    )
    rotate_token(request)


def sign_out(request: HttpRequest, response: HttpResponse) -> None:
    """End this browser's session, on the hub and in the browser."""
    _revoke(request)
    response.delete_cookie(COOKIE, path=settings.SESSION_COOKIE_PATH, samesite="Lax")


def own_path(wanted: str | None) -> str:
    """The path, if it is one of this hub, to redirect to; else the home page."""
    home, path = reverse("home"), wanted or ""
    return path if path.startswith(home) and url_has_allowed_host_and_scheme(path, allowed_hosts=None) else home


def _revoke(request: HttpRequest) -> None:
    token = presented_by(request)
    if token is not None and token.by_cookie:
        Credential.objects.filter(digest=token.digest, kind=Credential.Kind.SESSION).revoke()


PROGRAMS = ("clawborrator-cli", "clawborrator-supervisor", "clawborrator-mcp")
BROWSERS = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "Linux": "Linux",
}


def device_name(user_agent: str) -> str:
    """A known program by its name, a browser as "Firefox on Linux", else the header's first words."""
    for program in PROGRAMS:
        if program in user_agent:
            return program
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    return user_agent[:40] or "unknown"
