"""Device grants: a device shows a code, its user types it elsewhere, the device polls (RFC 8628). Good once."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from accounts.authn import digest
from accounts.errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrant,
    Refused,
    SlowDown,
)
from accounts.models import DeviceGrant, User
from accounts.oauth.codes import BAD_GRANT
from accounts.tokens import Kind, Minted, Source, replace_credential, revoke_issued
from kit.clock import db_now
from kit.ids import unguessable

LIFETIME = timedelta(minutes=10)
POLL_EVERY_S = 5
SLOWER_BY_S = 5
USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: no words
USER_CODE_LENGTH = 8


@dataclass(frozen=True, slots=True)
class DeviceCodes:
    """The codes of a device: the device keeps one, and its user types the other."""

    device_code: str
    user_code: str


def begin(app_name: str, machine_id: str) -> DeviceCodes:
    """Codes for a device and its user."""
    codes = DeviceCodes(unguessable("cw_dev_"), _user_code())
    DeviceGrant.objects.create(
        device_digest=digest(codes.device_code),
        user_digest=digest(codes.user_code),
        app_name=app_name,
        machine_id=machine_id,
        interval_s=POLL_EVERY_S,
        expires_at=db_now() + LIFETIME,
    )
    return codes


def find(typed: str) -> DeviceGrant | None:
    """The grant that waits for what a user typed, in any case, with or without the hyphen."""
    letters = "".join(letter for letter in typed.upper() if letter in USER_CODE_LETTERS)
    code = f"{letters[:4]}-{letters[4:]}"
    pending = DeviceGrant.objects.filter(status=DeviceGrant.Status.PENDING, expires_at__gt=db_now())
    return pending.filter(user_digest=digest(code)).first() if len(letters) == USER_CODE_LENGTH else None


def decide(grant: DeviceGrant, user: User, *, allow: bool) -> bool:
    """The user's word on a grant; False when it was decided or ran out meanwhile."""
    status = DeviceGrant.Status.ALLOWED if allow else DeviceGrant.Status.DENIED
    pending = DeviceGrant.objects.filter(pk=grant.pk, status=DeviceGrant.Status.PENDING, expires_at__gt=db_now())
    return bool(pending.update(status=status, user=user))


def poll(device_code: str, *, user_agent: str) -> Minted:
    """The app token of an allowed grant, once.

    Raises:
        AuthorizationPending, SlowDown, ExpiredToken, AccessDenied, InvalidGrant, QuotaExceeded: nothing was
            issued.
    """
    outcome = _poll(device_code, user_agent)
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


@transaction.atomic
def _poll(device_code: str, user_agent: str) -> Minted | Refused:
    grant = DeviceGrant.objects.select_for_update().filter(device_digest=digest(device_code)).first()
    if grant is None:
        return InvalidGrant(BAD_GRANT)
    now = db_now()
    if grant.status == DeviceGrant.Status.USED:
        revoke_issued(grant.credential)
        return InvalidGrant(BAD_GRANT)
    if grant.expires_at <= now:
        return ExpiredToken("the code ran out: begin again")
    if grant.status == DeviceGrant.Status.DENIED:
        return AccessDenied("the user said no")
    if grant.status == DeviceGrant.Status.PENDING:
        return _pending(grant, now)
    if grant.user is None or not grant.user.is_active:
        return InvalidGrant(BAD_GRANT)
    minted = replace_credential(grant.user, Kind.APP, Source.DEVICE, grant.app_name, grant.machine_id, user_agent)
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
