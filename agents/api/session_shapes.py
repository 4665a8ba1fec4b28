"""What goes out about sessions."""

from typing import Literal, TypedDict

from kit.describe import Time, Uuid

ShareRole = Literal["viewer", "prompter", "approver"]
PermissionStatus = Literal["pending", "allowed", "denied", "expired"]


class SessionDeleted(TypedDict):
    """What went with a session: rows by kind, and blobs that nothing names any more."""

    ok: Literal[True]
    sessionId: Uuid
    deleted: Literal[True]
    blobsSwept: int
    bytesFreed: int
    events: int
    opMessages: int
    shares: int
    files: int
    permissionRequests: int
    tokenUsage: int
    turns: int
    agents: int


class SessionArchived(TypedDict):
    """It is archived, now or already."""

    ok: Literal[True]
    alreadyArchived: bool
    sessionId: Uuid
    archivedAt: Time


class SessionKept(TypedDict):
    """A session that stays."""

    routingName: str
    sessionId: Uuid


class SessionPruned(TypedDict):
    """A session that goes, or went."""

    routingName: str
    sessionId: Uuid
    lastSeenAt: Time
    wasArchived: bool


class Pruned(TypedDict):
    """Of the caller's sessions that share a routing name: which stay, and which went or would go."""

    ok: Literal[True]
    dryRun: bool
    kept: list[SessionKept]
    deleted: list[SessionPruned]
    blobsSwept: int
    bytesFreed: int


class ApiShare(TypedDict):
    """To whom a session is lent; both names of the login are the same."""

    login: str
    userLogin: str
    role: ShareRole
    sharedByLogin: str
    createdAt: Time


class Shared(TypedDict):
    """A share as it now is."""

    ok: Literal[True]
    sessionId: Uuid
    login: str
    userLogin: str
    role: ShareRole


class Unshared(TypedDict):
    """How many shares were removed: 1, or 0 when there was none."""

    ok: Literal[True]
    sessionId: Uuid
    login: str
    userLogin: str
    removed: int


class ApiPermission(TypedDict):
    """What an agent's program asks leave for."""

    requestId: str
    tool: str
    inputPreview: str
    status: PermissionStatus
    requestedAt: Time
    resolvedAt: Time | None
    resolverLogin: str | None
    resolvedMessage: str | None
