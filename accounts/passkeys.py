"""Passkeys: WebAuthn credentials that a browser makes and signs with, by py_webauthn.

A passkey is the only factor, so the authenticator must have verified its user (PIN or biometrics). A challenge is
valid once, as the invitation or the sign-in attempt (`accounts.oauth.attempts`) to which it belongs.
"""

import ipaddress
import json
import logging
from typing import Any
from urllib.parse import urlsplit

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import base64url_to_bytes, bytes_to_base64url
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from accounts import settings
from accounts.errors import SignInRefused
from accounts.models import Passkey, User
from kit.clock import db_now
from kit.ids import unguessable

logger = logging.getLogger(__name__)

HUB_NAME = "Clawbridge"
TIMEOUT_MS = 300_000
MAX_ANSWER_CHARS = 20_000
BAD_PASSKEY = "this passkey was not accepted: try again, or sign in another way"


class BadPasskey(SignInRefused):
    """A browser's answer does not hold, or no active account has this passkey."""

    code = "invalid_passkey"


def passkeys_work() -> bool:
    """True if browsers make passkeys for this hub: it needs a host name, and https or localhost."""
    host = _host()
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return settings.IS_HTTPS or host == "localhost"
    return False


def registration_options(login: str, challenge: str) -> dict[str, Any]:
    """The options with which a browser makes a passkey for a login."""
    options = generate_registration_options(
        rp_id=_host(),
        rp_name=HUB_NAME,
        user_id=unguessable().encode(),
        user_name=login,
        user_display_name=f"@{login}",
        challenge=challenge.encode(),
        timeout=TIMEOUT_MS,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
    )
    return dict(json.loads(options_to_json(options)))


def check_registration(answer: str, challenge: str) -> Passkey:
    """Check the passkey that a browser made; returns it unsaved and without a user.

    Raises:
        BadPasskey: the browser's response is not valid, or the passkey is known already.
    """
    try:
        verified = verify_registration_response(
            credential=_bounded(answer),
            expected_challenge=challenge.encode(),
            expected_rp_id=_host(),
            expected_origin=settings.PUBLIC_ORIGIN,
            require_user_verification=True,
        )
    except _BROKEN as failure:
        raise _bad(failure) from None
    passkey = Passkey(
        credential_id=bytes_to_base64url(verified.credential_id),
        public_key=bytes_to_base64url(verified.credential_public_key),
        sign_count=verified.sign_count,
    )
    if Passkey.objects.filter(credential_id=passkey.credential_id).exists():
        raise BadPasskey(BAD_PASSKEY)
    return passkey


def sign_in_options(challenge: str) -> dict[str, Any]:
    """The options with which a browser signs with a passkey of its user's choice."""
    options = generate_authentication_options(
        rp_id=_host(),
        challenge=challenge.encode(),
        timeout=TIMEOUT_MS,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return dict(json.loads(options_to_json(options)))


def check_sign_in(answer: str, challenge: str) -> User:
    """The active user whose passkey signed a challenge.

    Raises:
        BadPasskey: the browser's response is not valid, or no active account has this passkey.
    """
    try:
        credential_id = bytes_to_base64url(base64url_to_bytes(str(json.loads(_bounded(answer))["id"])))
        passkey = Passkey.objects.select_related("user").filter(credential_id=credential_id).first()
        if passkey is None or not passkey.user.is_active:
            raise BadPasskey(BAD_PASSKEY)
        verified = verify_authentication_response(
            credential=answer,
            expected_challenge=challenge.encode(),
            expected_rp_id=_host(),
            expected_origin=settings.PUBLIC_ORIGIN,
            credential_public_key=base64url_to_bytes(passkey.public_key),
            credential_current_sign_count=passkey.sign_count,
            require_user_verification=True,
        )
    except _BROKEN as failure:
        raise _bad(failure) from None
    Passkey.objects.filter(pk=passkey.pk).update(sign_count=verified.new_sign_count, last_used_at=db_now())
    return passkey.user


_BROKEN = (WebAuthnException, ValueError, KeyError, TypeError, RecursionError)


def _bounded(answer: str) -> str:
    if len(answer) > MAX_ANSWER_CHARS:
        raise ValueError("the answer is too long")
    return answer


def _bad(failure: Exception) -> BadPasskey:
    logger.info("passkey.refused", extra={"why": type(failure).__name__})
    return BadPasskey(BAD_PASSKEY)


def _host() -> str:
    return urlsplit(settings.PUBLIC_URL).hostname or ""
