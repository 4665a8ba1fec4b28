"""Closes an account: from the next request on it cannot be used. Its rows are erased after that (`erasure`)."""

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import ClientGrant, Credential, Invitation, Passkey, ProviderIdentity, User
from agents.models import Agent, Halt
from kit.clock import db_now
from kit.ids import unguessable

PREFIX = "erased-"


class CannotClose(Exception):
    """The account stays as it is; the text says why."""


class LastAdministrator(CannotClose):
    """The hub would have no administrator left."""


class Halted(CannotClose):
    """An administrator halted the user, who would return with the same GitHub account as a new user."""


@transaction.atomic
def close(user_id: int, *, by_operator: bool = False) -> User:
    """Refuse its tokens, close its sockets, unpublish its agents, free its login and its accounts elsewhere.

    What it was called is kept until the rest is erased; closing again is fine.

    Raises:
        LastAdministrator: it is theirs.
        Halted: it was not the hub's operator who asked for it.
    """
    administrators = User.objects.lock_administrators()
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    if user.closed_at is not None:
        return user
    if administrators == {user.pk}:
        raise LastAdministrator("the last administrator cannot be erased: make another one first")
    if not by_operator and Halt.objects.active().filter(by_staff=True, user=user).exists():
        raise Halted("an administrator halted this account: ask them to erase it")
    ClientGrant.objects.filter(user=user).revoke()
    Credential.objects.filter(user=user).revoke()
    Agent.objects.owned_by(user).kept().update(deleted_at=Now(), status=Agent.Status.DRAFT)
    for model in (ProviderIdentity, Passkey):
        model.objects.filter(user=user).delete()
    Invitation.objects.filter(Q(user=user) | Q(made_by=user) | Q(login__iexact=user.login)).delete()
    user.former_login, user.login = user.login, unguessable(PREFIX)
    user.github_id, user.avatar_url, user.password = None, "", ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.closed_at = db_now()
    user.save()
    return user
