"""Sign-ins that a browser began: each is valid once, for ten minutes, and bound to a cookie of the browser."""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpRequest, HttpResponse

from accounts import settings
from accounts.authn import digest
from accounts.errors import InvalidState
from accounts.models import LoginAttempt
from accounts.oauth.clients import AuthorizationRequest
from kit.clock import db_now
from kit.ids import unguessable

LIFETIME = timedelta(minutes=10)
MAX_PATH_CHARS = 4000
BAD_STATE = "this sign-in was not begun in this browser, is over 10 minutes old, or is over already: begin again"


@dataclass(frozen=True, slots=True)
class Started:
    """The values of an attempt: the provider sends back `state`, and OpenID Connect's nonce in the ID token.

    Only the browser and the hub know the PKCE verifier.
    """

    state: str
    verifier: str
    nonce: str


def begin(
    browser: str, *, provider: str = "", next_path: str = "", asked: AuthorizationRequest | None = None
) -> Started:
    """Store that a browser, identified by the secret in its cookie, begins to sign in at a provider.

    `provider`: the issuer, "" for GitHub, or `PASSKEY`.
    """
    state = unguessable()
    LoginAttempt.objects.create(
        state_digest=digest(state),
        browser_digest=digest(browser),
        provider=provider,
        next_path=next_path if len(next_path) <= MAX_PATH_CHARS else "/",
        redirect_uri=asked.redirect_uri if asked else "",
        client_state=asked.state if asked else "",
        code_challenge=asked.code_challenge if asked else "",
        machine_id=asked.machine_id if asked else "",
        expires_at=db_now() + LIFETIME,
    )
    return _started(browser, state)


def finish_attempt(browser: str, state: str, *, provider: str = "") -> tuple[LoginAttempt, Started]:
    """Use up and return the attempt that this browser began at this provider with this state.

    Raises:
        InvalidState: the attempt does not exist, or has ended.
    """
    now = db_now()
    open_ones = LoginAttempt.objects.filter(
        state_digest=digest(state),
        browser_digest=digest(browser),
        provider=provider,
        used_at=None,
        expires_at__gt=now,
    )
    attempt = open_ones.first() if browser and state else None
    if attempt is None or not open_ones.update(used_at=now):
        raise InvalidState(BAD_STATE)
    return attempt, _started(browser, state)


def _started(browser: str, state: str) -> Started:
    """Derive the PKCE verifier and the nonce from the browser's secret; the database does not have them."""
    return Started(state, _derived(browser, state), _derived(browser, f"nonce {state}"))


def _derived(browser: str, text: str) -> str:
    return hmac.new(browser.encode(), text.encode(), hashlib.sha256).hexdigest()


KEY_CHARS = 40


def browser_key(request: HttpRequest) -> str:
    """The secret of this browser, or "" when it has none."""
    return request.COOKIES.get(_cookie_name(), "")


def sound_key(request: HttpRequest) -> str:
    """The secret of this browser; a new one if the browser has no valid secret."""
    key = browser_key(request)
    if len(key) == KEY_CHARS and key.isascii() and key.isalnum():
        return key
    return unguessable() + unguessable()[: KEY_CHARS - 32]


def keep_key(response: HttpResponse, key: str) -> None:
    """Set the cookie with the browser's secret."""
    response.set_cookie(
        _cookie_name(),
        key,
        max_age=LIFETIME,
        path="/",
        httponly=True,
        samesite="Lax",
        secure=settings.IS_HTTPS,
    )


def _cookie_name() -> str:
    """The name of the cookie; by the prefix `__Host-`, other hosts of the domain cannot set it."""
    return "__Host-cw_login" if settings.IS_HTTPS else "cw_login"
