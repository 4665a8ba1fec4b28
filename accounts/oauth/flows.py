"""The steps of signing in that leave a row: attempts, codes, device grants. Each is good once, not for long."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from accounts import quotas
from accounts.models import Credential, User
from accounts.oauth.asked import VERIFIER, Asked
from accounts.oauth.errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrant,
    InvalidState,
    Refused,
    SlowDown,
)
from accounts.oauth.models import DeviceGrant, LoginAttempt, LoginCode
from accounts.quotas import QuotaExceeded
from accounts.tokens import Minted, digest, mint
from kit import batches
from kit.clock import db_now
from kit.ids import unguessable

ATTEMPT_LIFETIME = timedelta(minutes=10)
CODE_LIFETIME = timedelta(minutes=5)
DEVICE_LIFETIME = timedelta(minutes=10)
KEPT_AFTER_EXPIRY = timedelta(days=1)
POLL_EVERY_S = 5
SLOWER_BY_S = 5
USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: no words
USER_CODE_LENGTH = 8
MINTED_APPS = 20
MAX_PATH_CHARS = 4000
BAD_GRANT = "the code is unknown, expired, used, or not for this client"
BAD_STATE = "this sign-in was not begun in this browser, is over 10 minutes old, or is over already: begin again"

Purpose = LoginCode.Purpose
Kind = Credential.Kind
Source = Credential.Source


@dataclass(frozen=True, slots=True)
class Started:
    """An attempt: what travels to GitHub and comes back, and what only the browser and the hub know."""

    state: str
    verifier: str


@dataclass(frozen=True, slots=True)
class DeviceCodes:
    """What the device keeps, and what its user types."""

    device_code: str
    user_code: str


# Attempts.


def begin(browser: str, *, next_path: str = "", asked: Asked | None = None) -> Started:
    """Note that a browser, known by its cookie's secret, leaves for GitHub."""
    state = unguessable()
    LoginAttempt.objects.create(
        state_digest=digest(state),
        browser_digest=digest(browser),
        next_path=next_path if len(next_path) <= MAX_PATH_CHARS else "/",
        redirect_uri=asked.redirect_uri if asked else "",
        client_state=asked.state if asked else "",
        code_challenge=asked.code_challenge if asked else "",
        machine_id=asked.machine_id if asked else "",
        expires_at=db_now() + ATTEMPT_LIFETIME,
    )
    return Started(state, _verifier(browser, state))


def come_back(browser: str, state: str) -> tuple[LoginAttempt, str]:
    """The attempt this browser began with this state, spent by this call, and its verifier.

    Raises:
        InvalidState: there is none, or no more.
    """
    now = db_now()
    open_ones = LoginAttempt.objects.filter(
        state_digest=digest(state), browser_digest=digest(browser), used_at=None, expires_at__gt=now
    )
    attempt = open_ones.first() if browser and state else None
    if attempt is None or not open_ones.update(used_at=now):
        raise InvalidState(BAD_STATE)
    return attempt, _verifier(browser, state)


def _verifier(browser: str, state: str) -> str:
    """GitHub's PKCE verifier: made of what the browser holds, so that no database holds it."""
    return hmac.new(browser.encode(), state.encode(), hashlib.sha256).hexdigest()


# Codes.


def issue_code(user: User, purpose: LoginCode.Purpose, asked: Asked) -> str:
    """A code for whoever knows the verifier of its challenge."""
    code = unguessable("cw_code_")
    LoginCode.objects.create(
        digest=digest(code),
        purpose=purpose,
        user=user,
        code_challenge=asked.code_challenge,
        machine_id=asked.machine_id,
        app_name=asked.app_name,
        expires_at=db_now() + CODE_LIFETIME,
    )
    return code


def exchange(code: str, verifier: str, purpose: LoginCode.Purpose, *, user_agent: str) -> Minted:
    """The session or app token that a code stands for. Any try spends it; a second one revokes what it gave.

    Raises:
        InvalidGrant, QuotaExceeded: no token was issued.
    """
    outcome = _exchange(code, verifier, purpose, user_agent)  # raise after its commit: what was spent stays spent
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


@transaction.atomic
def _exchange(code: str, verifier: str, purpose: LoginCode.Purpose, user_agent: str) -> Minted | Refused:
    row = LoginCode.objects.select_for_update().filter(digest=digest(code)).first()
    if row is None:
        return InvalidGrant(BAD_GRANT)
    now = db_now()
    if row.used_at is not None:
        _revoke(row.credential)
        return InvalidGrant(BAD_GRANT)
    row.used_at = now
    fits = row.purpose == purpose and row.expires_at > now and _fits(verifier, row.code_challenge)
    outcome: Minted | Refused = InvalidGrant(BAD_GRANT)
    if fits and row.user.is_active:
        outcome = _issue(row, user_agent)
        row.credential = outcome.credential if isinstance(outcome, Minted) else None
    row.save(update_fields=["used_at", "credential"])
    return outcome


def _issue(row: LoginCode, user_agent: str) -> Minted | Refused:
    source, kind = (Source.CLI, Kind.SESSION) if row.purpose == Purpose.CLI else (Source.SPA, Kind.APP)
    try:
        with transaction.atomic():
            return _replace(row.user, kind, source, row.app_name, row.machine_id, user_agent)
    except QuotaExceeded as over:
        return over


def _revoke(issued: Credential | None) -> None:
    if issued is not None:
        Credential.objects.filter(pk=issued.pk).revoke()


def _fits(verifier: str, challenge: str) -> bool:
    if not VERIFIER.match(verifier):
        return False
    hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return hmac.compare_digest(hashed, challenge)


def _replace(
    user: User, kind: Credential.Kind, source: Credential.Source, name: str, machine_id: str, user_agent: str
) -> Minted:
    """A new credential of a machine; the one it had goes.

    Raises:
        QuotaExceeded: it is an app's, and the user holds as many tokens as one may.
    """
    quotas.hold(user.pk)
    sources = [Source.CLI] if kind == Kind.SESSION else [Source.SPA, Source.DEVICE]
    if machine_id:
        user.credentials.filter(kind=kind, machine_id=machine_id, source__in=sources).revoke()
    if kind == Kind.APP:
        quotas.check_tokens(user)
    return mint(
        user,
        kind,
        name or "command-line sign-in",
        user_agent=user_agent,
        source=source,
        machine_id=machine_id,
        app_name=name,
    )


# App tokens of one's own.


@transaction.atomic
def mint_app(user: User, name: str, *, user_agent: str) -> Minted:
    """An app token by its user's own hand.

    Raises:
        QuotaExceeded: the user holds MINTED_APPS live ones, or as many tokens as one may.
    """
    quotas.hold(user.pk)
    quotas.check_tokens(user)
    if user.credentials.live().filter(kind=Kind.APP, source=Source.MINT).count() >= MINTED_APPS:
        raise QuotaExceeded(f"you hold {MINTED_APPS} app tokens: revoke one first")
    return mint(user, Kind.APP, name, user_agent=user_agent, source=Source.MINT, app_name=name[:60])


# Devices.


def begin_device(app_name: str, machine_id: str) -> DeviceCodes:
    """Codes for a device and its user."""
    codes = DeviceCodes(unguessable("cw_dev_"), _user_code())
    DeviceGrant.objects.create(
        device_digest=digest(codes.device_code),
        user_digest=digest(codes.user_code),
        app_name=app_name,
        machine_id=machine_id,
        interval_s=POLL_EVERY_S,
        expires_at=db_now() + DEVICE_LIFETIME,
    )
    return codes


def find_device(typed: str) -> DeviceGrant | None:
    """The grant that waits for what a user typed, in any case, with or without the hyphen."""
    letters = "".join(letter for letter in typed.upper() if letter in USER_CODE_LETTERS)
    code = f"{letters[:4]}-{letters[4:]}"
    pending = DeviceGrant.objects.filter(status=DeviceGrant.Status.PENDING, expires_at__gt=db_now())
    return pending.filter(user_digest=digest(code)).first() if len(letters) == USER_CODE_LENGTH else None


def decide_device(grant: DeviceGrant, user: User, *, allow: bool) -> bool:
    """The user's word on a grant; False when it was decided or ran out meanwhile."""
    status = DeviceGrant.Status.ALLOWED if allow else DeviceGrant.Status.DENIED
    pending = DeviceGrant.objects.filter(pk=grant.pk, status=DeviceGrant.Status.PENDING, expires_at__gt=db_now())
    return bool(pending.update(status=status, user=user))


def poll_device(device_code: str, *, user_agent: str) -> Minted:
    """The app token of an allowed grant, once.

    Raises:
        AuthorizationPending, SlowDown, ExpiredToken, AccessDenied, InvalidGrant, QuotaExceeded: nothing was
            issued.
    """
    outcome = _poll_device(device_code, user_agent)
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


@transaction.atomic
def _poll_device(device_code: str, user_agent: str) -> Minted | Refused:
    grant = DeviceGrant.objects.select_for_update().filter(device_digest=digest(device_code)).first()
    if grant is None:
        return InvalidGrant(BAD_GRANT)
    now = db_now()
    if grant.status == DeviceGrant.Status.USED:
        _revoke(grant.credential)
        return InvalidGrant(BAD_GRANT)
    if grant.expires_at <= now:
        return ExpiredToken("the code ran out: begin again")
    if grant.status == DeviceGrant.Status.DENIED:
        return AccessDenied("the user said no")
    if grant.status == DeviceGrant.Status.PENDING:
        return _pending(grant, now)
    if grant.user is None or not grant.user.is_active:
        return InvalidGrant(BAD_GRANT)
    minted = _replace(grant.user, Kind.APP, Source.DEVICE, grant.app_name, grant.machine_id, user_agent)
    grant.status, grant.credential = DeviceGrant.Status.USED, minted.credential
    grant.save(update_fields=["status", "credential"])
    return minted


def _pending(grant: DeviceGrant, now: datetime) -> Refused:
    is_early = grant.polled_at is not None and now - grant.polled_at < timedelta(seconds=grant.interval_s - 0.5)
    grant.polled_at = now
    grant.interval_s += SLOWER_BY_S if is_early else 0
    grant.save(update_fields=["polled_at", "interval_s"])
    if is_early:
        return SlowDown(f"poll every {grant.interval_s} s")
    return AuthorizationPending("the user has not decided yet")


def _user_code() -> str:
    letters = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


# Tidying.


def forget() -> None:
    """Delete what ran out a day ago; until then a second use of a code still revokes."""
    for model in (LoginAttempt, LoginCode, DeviceGrant):
        batches.delete(model.objects.filter(expires_at__lt=db_now() - KEPT_AFTER_EXPIRY))
