"""The cookie that binds a sign-in to the browser that began it."""

from django.http import HttpRequest, HttpResponse

from accounts.oauth.attempts import LIFETIME
from accounts.settings import get_settings
from kit.ids import unguessable

KEY_CHARS = 40


def browser_key(request: HttpRequest) -> str:
    """The secret of this browser, or "" when it has none."""
    return request.COOKIES.get(_cookie_name(), "")


def sound_key(request: HttpRequest) -> str:
    """The secret of this browser; a new one when it has none of ours."""
    key = browser_key(request)
    if len(key) == KEY_CHARS and key.isascii() and key.isalnum():
        return key
    return unguessable() + unguessable()[: KEY_CHARS - 32]


def keep_key(response: HttpResponse, key: str) -> None:
    """Have the browser bring its secret along when it comes back."""
    response.set_cookie(
        _cookie_name(),
        key,
        max_age=LIFETIME,
        path="/",
        httponly=True,
        samesite="Lax",
        secure=get_settings().is_https,
    )


def _cookie_name() -> str:
    """`__Host-` keeps other names below the hub's from planting a cookie of theirs."""
    return "__Host-cw_login" if get_settings().is_https else "cw_login"
