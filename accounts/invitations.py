"""Invitations: links that set up a passkey or a password for an account. A link works once, within a day."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts import audit_log, settings
from accounts.authn import digest
from accounts.errors import SignInRefused
from accounts.models import Credential, Invitation, User
from accounts.tokens import LOGIN, BadLogin
from kit.clock import db_now
from kit.ids import unguessable

logger = logging.getLogger(__name__)

LIFETIME = timedelta(hours=24)
GONE = "This link is not good: it was used, it is over 24 hours old, or there was none. Ask for a new one."
TAKEN = "@{login} belongs to another account by now. Ask for a link with another login."


class CannotInvite(Exception):
    """The invitation is refused, and no link was made; the text says why."""


class NoInvitation(SignInRefused):
    """No open invitation has this link. The text does not tell if it was used, has expired or never existed."""

    code = "invalid_invitation"

    def __init__(self) -> None:
        super().__init__(GONE)


class NameTaken(SignInRefused):
    """Another account got the login after the invitation was made."""

    status = 403
    code = "login_taken"


@dataclass(frozen=True, slots=True)
class Invited:
    """A new invitation and its link, which is not stored."""

    invitation: Invitation
    url: str


@transaction.atomic
def invite(login: str, *, is_admin: bool, made_by: User | None) -> Invited:
    """Make a link for a login; it replaces an older link for this login.

    `made_by`: the member of the staff, None for the operator on the hub's machine. Only the operator makes links
    for staff and for accounts that can sign in already: staff would take the account over.

    Raises:
        BadLogin: the text cannot be a login.
        CannotInvite: the account is suspended, or this member of the staff may not set it up.
    """
    user = User.objects.named(login)
    if user is None and not LOGIN.match(login):
        raise BadLogin(login)
    if user is not None and not user.is_active:
        raise CannotInvite(f"@{user.login} is suspended")
    if user is not None and user.is_group:
        raise CannotInvite(f"@{user.login} is a group, as which no user signs in")
    if user is not None and made_by is not None and not _may_set_up(user):
        raise CannotInvite(
            f"@{user.login} is of the staff or can sign in already: the hub's operator makes such a link, with"
            " manage.py invite"
        )
    now, token = db_now(), unguessable()
    open_now().filter(login__iexact=login).update(expires_at=now)
    invitation = Invitation.objects.create(
        digest=digest(token),
        login=user.login if user else login,
        user=user,
        is_admin=is_admin,
        made_by=made_by,
        expires_at=now + LIFETIME,
    )
    if made_by is not None:
        audit_log.record_act(
            made_by, Invitation, audit_log.name_rows([invitation]), f"invited @{invitation.login}"
        )
    return Invited(invitation, f"{settings.PUBLIC_ORIGIN}{reverse('join', args=[token])}")


def open_now() -> QuerySet[Invitation]:
    """Invitations that are neither used nor expired."""
    return Invitation.objects.filter(used_at=None, expires_at__gt=db_now())


def find(token: str) -> Invitation:
    """The open invitation of a link.

    Raises:
        NoInvitation: no open invitation has the link.
    """
    return _checked(open_now().filter(digest=digest(token)).select_related("user", "made_by").first())


def challenge_of(token: str) -> str:
    """The challenge that a passkey of an invitation must sign: only the holder of the link knows it."""
    return digest(f"passkey {token}")


@transaction.atomic
def redeem(token: str, set_up: Callable[[User], None]) -> User:
    """Use an invitation; returns its account, created if needed, after `set_up` has added a way to sign in.

    An account that existed is signed out everywhere.

    Raises:
        NoInvitation, NameTaken: nothing was written. An exception of `set_up` also undoes all.
    """
    locked = open_now().select_for_update(of=("self",)).filter(digest=digest(token))
    invitation = _checked(locked.select_related("user", "made_by").first())
    user = invitation.user or _new_user(invitation.login)
    if invitation.is_admin:
        user.is_staff = user.is_superuser = True
        user.save(update_fields=["is_staff", "is_superuser"])
    set_up(user)
    if invitation.user is not None:  # someone else may know the old password, or have a session
        Credential.objects.filter(user=user, kind=Credential.Kind.SESSION).revoke()
    Invitation.objects.filter(pk=invitation.pk).update(used_at=db_now(), user=user)
    audit_log.record_act(user, User, audit_log.name_rows([user]), "set up a sign-in by an invitation")
    logger.info("invitation.used", extra={"user_id": user.pk})
    return user


def _checked(invitation: Invitation | None) -> Invitation:
    """Check that the maker of the invitation may still invite, and that the account may still be set up."""
    if invitation is None:
        raise NoInvitation
    user, maker = invitation.user, invitation.made_by
    if user is not None and (not user.is_active or (maker is not None and not _may_set_up(user))):
        raise NoInvitation
    if maker is not None and not (maker.is_active and maker.is_staff):
        raise NoInvitation
    return invitation


def _may_set_up(user: User) -> bool:
    """True if a member of the staff may set up the account: a person's local account without a way to sign in."""
    has_password = bool(user.password) and user.has_usable_password()
    has_provider = user.github_id is not None or user.provider_identities.exists()
    is_person = not (user.is_service or user.is_group)
    return is_person and not (has_password or has_provider or user.passkeys.exists() or user.is_staff)


def _new_user(login: str) -> User:
    try:
        with transaction.atomic():
            return User.objects.create(login=login)
    except IntegrityError:
        raise NameTaken(TAKEN.format(login=login)) from None
