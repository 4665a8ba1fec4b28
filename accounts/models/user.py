"""The users of a hub."""

from typing import ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

MAX_KEPT_DAYS = 36_500
MAX_LOGIN_CHARS = 64


class UserManager(BaseUserManager["User"]):
    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(login__iexact=username)

    def named(self, login: str) -> "User | None":
        """The user with this login in any case; None also for a text that cannot be a login."""
        can_be = 0 < len(login) <= MAX_LOGIN_CHARS and login.isprintable()
        return self.filter(login__iexact=login).first() if can_be else None

    def lock_administrators(self) -> set[int]:
        """The ids of all active members of the staff, whose rows stay locked until the transaction ends.

        The hub keeps at least one: of two concurrent transactions that take rights away, the
        second reads the result of the first.
        """
        # FOR NO KEY UPDATE: an open ask, for whose session the transaction may wait, can still refer to these
        # users.
        locked = self.select_for_update(no_key=True).order_by("pk")
        return set(locked.filter(is_staff=True, is_active=True).values_list("pk", flat=True))


class User(AbstractBaseUser, PermissionsMixin):
    """A person, a service or a group. The key to a person's account is a GitHub id, an issuer's subject, a passkey
    or a password; the login is only its name.

    `is_active` False suspends the user and all that belongs to the user; `is_staff` shows all rows of the admin.
    The text of questions to their agents and sessions is blanked up to `questions_blanked_to`.
    """

    login = models.CharField(max_length=MAX_LOGIN_CHARS, unique=True)
    github_id = models.BigIntegerField(null=True, blank=True, unique=True)
    avatar_url = models.URLField(blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    is_service = models.BooleanField(default=False, db_default=False, help_text="A program, not a person.")
    is_group = models.BooleanField(
        default=False, db_default=False, help_text="The account of a group, for which its maintainers act."
    )
    questions_kept_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_KEPT_DAYS)],
        help_text="Days after which the text of questions to their agents is blanked; empty: the hub's own.",
    )
    questions_blanked_to = models.DateTimeField(null=True, editable=False)
    closed_at = models.DateTimeField(null=True, editable=False, help_text="When the account was erased.")
    former_login = models.CharField(
        max_length=MAX_LOGIN_CHARS,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="Of a closed account, until the last of it is erased.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    # Set on the account of a group by the code that lets a maintainer act for the group; no column.
    acted_by: "User | None" = None

    objects: ClassVar[UserManager] = UserManager()
    USERNAME_FIELD = "login"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [models.UniqueConstraint(Lower("login"), name="one_user_per_login_in_any_case")]

    def __str__(self) -> str:
        return self.login

    @property
    def identities(self) -> list[str]:
        """The identity providers of the user; `service` for a service user, `group` for the account of a group."""
        known = {"github": self.github_id is not None, "service": self.is_service, "group": self.is_group}
        named = [provider for provider, is_known in known.items() if is_known]
        return named + [one.issuer for one in self.provider_identities.all()]
