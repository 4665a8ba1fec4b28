"""Tokens of users, grants of registered clients, and the keys with which the hub signs."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.db import models, transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models.user import User
from kit.clock import approximate_now

Listener = Callable[[Sequence[int]], None]

_listeners: list[Listener] = []


def on_revoked(listener: Listener) -> None:
    """Register a function that is called with the ids of credentials in the transaction that revokes them."""
    if listener not in _listeners:
        _listeners.append(listener)


def _announce_revoked(credential_ids: Sequence[int]) -> None:
    if credential_ids:
        for listener in _listeners:
            listener(credential_ids)


class CredentialQuerySet(models.QuerySet["Credential"]):
    def live(self) -> "CredentialQuerySet":
        """The credentials that are neither revoked nor expired."""
        unexpired = models.Q(expires_at=None) | models.Q(expires_at__gt=Now())
        return self.filter(unexpired, revoked_at=None)

    def accepted(self) -> "CredentialQuerySet":
        """The live credentials of active users; a token of a group ends with the suspension of its maker."""
        by_active = models.Q(minted_by=None) | models.Q(minted_by__is_active=True)
        return self.live().filter(by_active, user__is_active=True)

    @transaction.atomic
    def revoke(self) -> int:
        """Refuse these credentials from the next request on and notify listeners; returns how many were still
        valid.

        A client's access token ends with its grant, so that the client cannot refresh it.
        """
        chosen = dict(self.filter(revoked_at=None).values_list("pk", "grant_id"))
        ids = set(chosen)
        if grants := set(filter(None, chosen.values())):
            ClientGrant.objects.filter(pk__in=grants, revoked_at=None).update(revoked_at=Now())
            ids.update(Credential.objects.filter(grant__in=grants, revoked_at=None).values_list("pk", flat=True))
        count = Credential.objects.filter(pk__in=ids, revoked_at=None).update(revoked_at=Now())
        _announce_revoked(list(ids))
        return int(count)

    def spent_before(self, moment: datetime) -> "CredentialQuerySet":
        """The credentials that were revoked or expired before a moment."""
        return self.filter(models.Q(revoked_at__lt=moment) | models.Q(expires_at__lt=moment))


class Credential(models.Model):
    """A token of a user. The row has only the hash; the hub showed the text once."""

    class Kind(models.TextChoices):
        SESSION = "session", "sign-in session (cw_sess_)"
        CHANNEL = "channel", "agent's channel token (ck_live_)"
        APP = "app", "app token (cw_app_)"
        AGNT = "agnt", "AGNT key (agnt_live_)"

    class Source(models.TextChoices):
        WEB = "web", "browser sign-in"
        CLI = "cli", "command-line sign-in"
        SPA = "spa", "app, allowed in the browser"
        DEVICE = "device", "app, allowed by a typed code"
        MINT = "mint", "minted by its user"
        OPERATOR = "", "minted on the hub's machine"

    user = models.ForeignKey(User, models.CASCADE, related_name="credentials")
    kind = models.CharField(max_length=8, choices=Kind)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, help_text="The first characters, to recognise it by.")
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, in hex.")
    user_agent = models.CharField(max_length=300, blank=True, help_text="Of the request that minted it.")
    machine_id = models.CharField(max_length=100, blank=True, default="", db_default="")
    app_name = models.CharField(max_length=60, blank=True, default="", db_default="")
    scopes = models.CharField(
        max_length=40, blank=True, default="", db_default="", help_text="Separated by spaces; empty: all of them."
    )
    only_agent = models.CharField(
        max_length=160, blank=True, default="", db_default="", help_text="The one agent it asks, as `owner/slug`."
    )
    is_jwt = models.BooleanField(
        "JWT", default=False, db_default=False, help_text="Its text is a signed JWT, not random characters."
    )
    source = models.CharField(max_length=8, choices=Source, blank=True, default="", db_default="")
    minted_by = models.ForeignKey(
        User,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Of a group's token: the maintainer who made it.",
    )
    acts_for = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Of a browser's session: the account of the group for which its user acts on pages.",
    )
    grant = models.ForeignKey(
        "accounts.ClientGrant",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="access_tokens",
        help_text="Of the client that refreshes it.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[Any] = CredentialQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.shown_prefix} ({self.kind} of {self.user_id})"

    @property
    def shown_prefix(self) -> str:
        """The text by which the owner recognises the token: its first characters, or the number of a JWT."""
        return self.prefix if self.is_jwt else f"{self.prefix}…"

    @property
    def is_live(self) -> bool:
        """True if the hub accepts the credential now."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > approximate_now())

    @staticmethod
    def touch(ids: Iterable[int]) -> None:
        """Record that these credentials were just used."""
        Credential.objects.filter(id__in=list(ids)).update(last_used_at=Now())


USERS_KINDS = (Credential.Kind.CHANNEL, Credential.Kind.APP)  # the kinds of tokens that users make


class ClientGrantQuerySet(models.QuerySet["ClientGrant"]):
    def live(self) -> "ClientGrantQuerySet":
        """The grants whose clients can refresh their access tokens."""
        return self.filter(revoked_at=None, expires_at__gt=Now())

    @transaction.atomic
    def revoke(self) -> int:
        """End these grants with all their access tokens; returns how many had not ended."""
        ids = list(self.filter(revoked_at=None).order_by("pk").values_list("pk", flat=True))
        count = ClientGrant.objects.filter(pk__in=ids, revoked_at=None).update(revoked_at=Now())
        Credential.objects.filter(grant__in=ids).revoke()
        return int(count)

    def spent_before(self, moment: datetime) -> "ClientGrantQuerySet":
        """The grants that ended or expired before a moment."""
        return self.filter(models.Q(revoked_at__lt=moment) | models.Q(expires_at__lt=moment))


class ClientGrant(models.Model):
    """The consent of a user to a registered client: one valid refresh token and its access tokens (docs/adr/0187).

    The text of a refresh token names its family, which stays, and has a secret, which each use replaces. The row
    has hashes only; `successor_secret` makes the text of the next refresh token from the text of the one before.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="client_grants")
    client_digest = models.CharField(max_length=64, help_text="SHA-256 of the client's id.")
    app_name = models.CharField(max_length=60)
    scopes = models.CharField(max_length=64, help_text="Separated by spaces.")
    user_agent = models.CharField(max_length=300, blank=True, help_text="Of the request that exchanged the code.")
    family_digest = models.CharField(max_length=64, unique=True)
    digest = models.CharField(max_length=64, help_text="Of the valid refresh token.")
    previous_digest = models.CharField(max_length=64, blank=True)
    successor_secret = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    refreshed_at = models.DateTimeField(null=True, blank=True, help_text="The last use of a refresh token.")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    reused_at = models.DateTimeField(
        null=True, blank=True, help_text="When a used refresh token came again, which ended the grant."
    )

    objects: ClassVar[Any] = ClientGrantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "client_digest"],
                condition=models.Q(revoked_at=None),
                name="one_grant_per_user_and_client",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.app_name} (of {self.user_id})"

    @property
    def is_live(self) -> bool:
        """True if the client can refresh its access token now."""
        return self.revoked_at is None and self.expires_at > approximate_now()


class SigningKey(models.Model):
    """The current or a former signing key of the hub (`accounts.signing`)."""

    kid = models.CharField(max_length=43, unique=True, help_text="RFC 7638 thumbprint of the public key.")
    alg = models.CharField(max_length=5)
    public = models.JSONField(help_text="The public key as a JWK.")
    sealed = models.TextField(blank=True, help_text="The private key, sealed; gone once it is retired.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["alg"], condition=models.Q(retired_at=None), name="one_key_signs_per_algorithm"
            ),
        ]

    def __str__(self) -> str:
        return f"signing key {self.kid[:8]}…"
