"""The tables of accounts."""

from accounts.models.credential import USERS_KINDS, ClientGrant, Credential, SigningKey, on_revoked
from accounts.models.group import Group, GroupInvitation, Membership
from accounts.models.scim import ScimGroup, ScimToken, ScimUser
from accounts.models.sign_in import (
    DeviceGrant,
    Invitation,
    LoginAttempt,
    LoginCode,
    Passkey,
    ProviderIdentity,
    delete_expired,
)
from accounts.models.user import MAX_KEPT_DAYS, MAX_LOGIN_CHARS, User

__all__ = [
    "MAX_KEPT_DAYS",
    "MAX_LOGIN_CHARS",
    "USERS_KINDS",
    "ClientGrant",
    "Credential",
    "DeviceGrant",
    "Group",
    "GroupInvitation",
    "Invitation",
    "LoginAttempt",
    "LoginCode",
    "Membership",
    "Passkey",
    "ProviderIdentity",
    "ScimGroup",
    "ScimToken",
    "ScimUser",
    "SigningKey",
    "User",
    "delete_expired",
    "on_revoked",
]
