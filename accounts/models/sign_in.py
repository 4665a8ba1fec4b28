"""The tables of sign-ins, sign-in methods and invitations.

Values that an attacker could use are stored only as hashes.
"""

from datetime import timedelta

from django.db import models
from django.utils import timezone

from accounts.models.credential import Credential
from accounts.models.group import GroupInvitation
from kit import batches
from kit.clock import db_now


class LoginAttempt(models.Model):
    """A sign-in that a browser began at a provider; with `redirect_uri` on behalf of a command line."""

    state_digest = models.CharField(max_length=64, unique=True)
    browser_digest = models.CharField(max_length=64, help_text="Of the cookie of the browser that began.")
    provider = models.CharField(
        max_length=255, blank=True, default="", db_default="", help_text="The issuer; empty: GitHub."
    )
    next_path = models.CharField(max_length=4000, blank=True)
    redirect_uri = models.CharField(max_length=300, blank=True)
    client_state = models.CharField(max_length=512, blank=True)
    code_challenge = models.CharField(max_length=43, blank=True)
    machine_id = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"attempt {self.pk}"


class LoginCode(models.Model):
    """A code for a command line, an app or a registered client; valid once, for its challenge and client."""

    class Purpose(models.TextChoices):
        CLI = "cli", "command line"
        APP = "app", "app"
        CLIENT = "reg", "registered client"

    digest = models.CharField(max_length=64, unique=True)
    purpose = models.CharField(max_length=3, choices=Purpose)
    user = models.ForeignKey("accounts.User", models.CASCADE, related_name="+")
    code_challenge = models.CharField(max_length=43)
    machine_id = models.CharField(max_length=100, blank=True)
    app_name = models.CharField(max_length=60, blank=True)
    client_digest = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="Of the registered client and its redirect address.",
    )
    scopes = models.CharField(max_length=64, blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True)
    credential = models.ForeignKey("accounts.Credential", models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"code {self.pk} ({self.purpose})"


class DeviceGrant(models.Model):
    """An app on a device without a browser, waiting for its user to type a code somewhere else."""

    class Status(models.TextChoices):
        PENDING = "pending"
        ALLOWED = "allowed"
        DENIED = "denied"
        USED = "used"

    device_digest = models.CharField(max_length=64, unique=True)
    user_digest = models.CharField(max_length=64, unique=True)
    app_name = models.CharField(max_length=60)
    machine_id = models.CharField(max_length=100, blank=True)
    status = models.CharField(max_length=7, choices=Status, default=Status.PENDING)
    user = models.ForeignKey("accounts.User", models.CASCADE, null=True, related_name="+")
    credential = models.ForeignKey("accounts.Credential", models.SET_NULL, null=True, related_name="+")
    interval_s = models.PositiveIntegerField()
    polled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"device grant {self.pk} ({self.status})"


class ProviderIdentity(models.Model):
    """The account at an OpenID Connect provider with which a user signs in. Issuer and subject are the key."""

    user = models.ForeignKey("accounts.User", models.CASCADE, related_name="provider_identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255, help_text="The provider's own name for the account.")
    username = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="The user name there at the last sign-in; by it SCIM finds the account of a person.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "provider identities"
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_user_per_issuer_and_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class Passkey(models.Model):
    """A WebAuthn credential of a user; its private key never leaves the user's device."""

    user = models.ForeignKey("accounts.User", models.CASCADE, related_name="passkeys")
    credential_id = models.CharField(max_length=1400, unique=True, help_text="In base64url.")
    public_key = models.TextField(help_text="The COSE key, in base64url.")
    sign_count = models.BigIntegerField(default=0, help_text="As the authenticator said last.")
    name = models.CharField(max_length=100, blank=True, help_text="Where it was made.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"passkey {self.pk}"


class Invitation(models.Model):
    """A link that sets up a way to sign in; it works once, within a day. The row has only the hash of the link.

    `user`: whose account it is for, from the start or once it was used. `made_by`: the member of the staff; null:
    it was made on the hub's machine.
    """

    digest = models.CharField(max_length=64, unique=True)
    login = models.CharField(max_length=64)
    user = models.ForeignKey("accounts.User", models.CASCADE, null=True, blank=True, related_name="+")
    is_admin = models.BooleanField(default=False)
    made_by = models.ForeignKey("accounts.User", models.CASCADE, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"invitation of {self.login}"


KEPT_AFTER_EXPIRY = timedelta(days=1)


def delete_expired() -> None:
    """Delete the rows of sign-ins, and access tokens that clients refresh, that expired a day ago.

    Until then a second use of a code still revokes.
    """
    for model in (LoginAttempt, LoginCode, DeviceGrant, Invitation, GroupInvitation):
        batches.delete(model.objects.filter(expires_at__lt=db_now() - KEPT_AFTER_EXPIRY))
    batches.delete(Credential.objects.exclude(grant=None).filter(expires_at__lt=db_now() - KEPT_AFTER_EXPIRY))
