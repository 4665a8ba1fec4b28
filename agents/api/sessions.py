"""REST views of the caller's own and shared sessions: list, archive, prune and delete."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from django.db.models import Model
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import MAX_LIMIT, PageQuery, page, read_query
from accounts.rest import Body, caller_of, check_no_fields
from agents import settings
from agents.core.ask_starter import load_peers
from agents.models import Agent, Event, File, OpMessage, PermissionRequest, Session, Share, TokenUsage, Turn
from agents.models.session import SEEN_AT, online_sessions
from agents.transcript.access import (
    NotAllowed,
    SessionGone,
    SessionRole,
    archive_session,
    find_session,
    role_of,
    sessions_visible_to,
)
from agents.transcript.session_deletion import Deletion, PruningPlan, delete_sessions, plan_pruning
from kit.describe import ErrorBody, Items, Page, Time, Uuid
from kit.rows import Always, RowSource, show


def get_session(request: Request, public_id: UUID, *, at_least: SessionRole = SessionRole.VIEWER) -> Session:
    """A session that the caller may see, and in which the caller has at least this role.

    Raises:
        NotFound: the session does not exist, or the caller may not see it.
        PermissionDenied: the caller may see the session, but has only a lower role.
    """
    try:
        session = find_session(public_id, caller_of(request).pk, at_least=at_least)
    except NotAllowed as refused:
        raise PermissionDenied(str(refused)) from None
    if session is None:
        raise NotFound("no such session")
    return session


class SessionDeleted(TypedDict):
    """The rows deleted with a session, by kind, and the blobs that no row names any more."""

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


DELETED_ROWS: dict[str, type[Model]] = {
    "events": Event,
    "opMessages": OpMessage,
    "shares": Share,
    "files": File,
    "permissionRequests": PermissionRequest,
    "tokenUsage": TokenUsage,
    "turns": Turn,
    "agents": Agent,
}
MAX_LISTED = 20_000  # if SESSIONS_PER_OWNER is higher, or sets no limit


RoleWord = Literal["owner", "approver", "prompter", "viewer"]


NO_DESKTOPS = "this hub does not manage desktops"


class ApiSession(TypedDict):
    """A running or past agent. The last five fields are for clients that look for them."""

    id: Annotated[Uuid, RowSource("public_id")]
    routingName: Annotated[str | None, RowSource("shown_name")]
    startedByLogin: Annotated[str, RowSource("owner.login")]
    role: RoleWord
    host: str | None
    cwd: str | None
    channelVersion: str | None
    startedAt: Time
    lastSeenAt: Annotated[Time, RowSource("seen_at")]
    archivedAt: Time | None
    connected: bool
    agentHandle: str | None
    managedBy: None
    autoStart: Annotated[bool, Always(False)]
    autoEnter: Annotated[bool, Always(False)]
    extraFlags: Annotated[list[str], Always(())]
    preserveSessionId: Annotated[bool, Always(False)]


class SessionQuery(serializers.Serializer[Any]):
    """The sessions to list."""

    connected = serializers.BooleanField(default=False)
    archived = serializers.BooleanField(default=False)


class SessionChanges(Body):
    """The settings of a supervisor; this hub has no supervisors, so they stay as they are."""

    autoStart = serializers.BooleanField(required=False)
    managedByMachineId = serializers.CharField(required=False, allow_null=True, max_length=100)


class DeleteQuery(serializers.Serializer[Any]):
    """Deleting is said aloud."""

    hard = serializers.BooleanField(default=False)


class Sessions(APIView):
    """`/sessions`"""

    @extend_schema(parameters=[SessionQuery, PageQuery], responses=Page[ApiSession])
    def get(self, request: Request) -> Response:
        """The caller's sessions and those shared with them, last seen first: the connected ones.

        Archived ones only when asked for. Without `limit` all of them: the command line finds names in this list.
        """
        query, caller = read_query(SessionQuery, request), caller_of(request)
        found = sessions_visible_to(caller.pk)
        if not query["archived"]:
            found = found.filter(archived_at=None)
        if query["connected"]:
            found = found.filter(pk__in=online_sessions(found.values_list("pk", flat=True)))
        ordered = found.order_by(SEEN_AT.desc(), "-pk")
        return page(request, ordered, lambda rows: show_sessions(rows, caller.pk), most=most_listed())


class OneSession(APIView):
    """`/sessions/{id}`"""

    @extend_schema(responses=ApiSession)
    def get(self, request: Request, public_id: UUID) -> Response:
        """One session of the caller's, or shared with them."""
        return Response(show_session(request, get_session(request, public_id)))

    @extend_schema(request=SessionChanges, responses=ApiSession)
    def patch(self, request: Request, public_id: UUID) -> Response:
        """Accept the present values, and refuse all others: no setting of a session can be changed."""
        session = get_session(request, public_id, at_least=SessionRole.OWNER)
        changes = SessionChanges.read(request)
        if refused := [name for name, value in changes.validated_data.items() if value]:
            raise ValidationError(dict.fromkeys(refused, NO_DESKTOPS))
        return Response(show_session(request, session))

    @extend_schema(parameters=[DeleteQuery], responses={200: SessionDeleted})
    def delete(self, request: Request, public_id: UUID) -> Response:
        """Delete a session for good, with its transcript, shares, files, agent and audit.

        Only with `hard=true`; to put it away, archive it. A connected agent is told not to come back.
        """
        session = get_session(request, public_id, at_least=SessionRole.OWNER)
        if not read_query(DeleteQuery, request)["hard"]:
            raise ValidationError({"hard": "want hard=true, for this cannot be undone; or POST …/archive instead"})
        gone = delete_sessions([session.pk])
        if session.pk not in gone.session_ids:
            raise NotFound("no such session")
        counts = {name: gone.count(model) for name, model in DELETED_ROWS.items()}
        return Response(show(SessionDeleted, gone, sessionId=str(public_id), **counts))


def most_listed() -> int:
    """The most sessions in one list: as many as one owner may have, and MAX_LIMIT shared sessions."""
    return min(settings.SESSIONS_PER_OWNER or MAX_LISTED, MAX_LISTED) + MAX_LIMIT


def show_session(request: Request, session: Session) -> ApiSession:
    """One ApiSession."""
    return show_sessions([session], caller_of(request).pk)[0]


def show_sessions(sessions: Sequence[Session], user_id: int) -> list[ApiSession]:
    """The ApiSessions of sessions as this user sees them, in two queries for any number of sessions.

    The sessions come from `sessions_visible_to`, with their owners, the user's roles and `seen_at`. Agents that
    the user may not ask are left out.
    """
    ids = [session.pk for session in sessions]
    online = online_sessions(ids)
    published = Agent.objects.askable_by(user_id).filter(session_id__in=ids)
    handles = dict(published.values_list("session_id", "handle"))
    return [
        show(
            ApiSession,
            one,
            role=role_of(one).word,
            connected=one.pk in online,
            agentHandle=handles.get(one.pk),
        )
        for one in sessions
    ]


class ApiPeer(TypedDict):
    """A session as a peer; `mine`: the caller owns it."""

    routingName: str
    ownerLogin: Annotated[str, RowSource("session.owner.login")]
    mine: Annotated[bool, RowSource("is_mine")]
    sessionId: Annotated[Uuid, RowSource("session.public_id")]
    cwd: Annotated[str | None, RowSource("session.cwd")]
    online: Annotated[bool, RowSource("is_online")]


class Peers(APIView):
    """`/peers`"""

    @extend_schema(responses=Items[ApiPeer])
    def get(self, request: Request) -> Response:
        """Sessions the caller may see, own ones first; as many as `/sessions` lists."""
        peers = load_peers(caller_of(request).pk, most=most_listed())
        shown = [show(ApiPeer, peer, routingName=f"@{peer.session.routing_name}") for peer in peers]
        return Response({"items": shown})


class SessionArchived(TypedDict):
    """The session is archived, now or already."""

    ok: Literal[True]
    alreadyArchived: bool
    sessionId: Annotated[Uuid, RowSource("public_id")]
    archivedAt: Time


class SessionKept(TypedDict):
    """A session that stays."""

    routingName: Annotated[str, RowSource("shown_name")]
    sessionId: Annotated[Uuid, RowSource("public_id")]


class SessionPruned(TypedDict):
    """A session that goes, or went."""

    routingName: Annotated[str, RowSource("shown_name")]
    sessionId: Annotated[Uuid, RowSource("public_id")]
    lastSeenAt: Annotated[Time, RowSource("seen_at")]
    wasArchived: bool


class Pruned(TypedDict):
    """Of the caller's sessions that share a routing name: which stay, and which went or would go."""

    ok: Literal[True]
    dryRun: bool
    kept: list[SessionKept]
    deleted: list[SessionPruned]
    blobsSwept: int
    bytesFreed: int


class PruneBody(Body):
    """The names to tidy up: one, with or without its @, or all. `dryRun` deletes nothing, and must be said."""

    dryRun = serializers.BooleanField()
    routingName = serializers.CharField(required=False, allow_null=True, max_length=81)


class ArchiveSession(APIView):
    """`/sessions/{id}/archive`"""

    @extend_schema(request=None, responses={200: SessionArchived, 400: ErrorBody})
    def post(self, request: Request, public_id: UUID) -> Response:
        """Take a session off the lists; it comes back when its agent does."""
        session = get_session(request, public_id, at_least=SessionRole.OWNER)
        check_no_fields(request)
        try:
            archived, session.archived_at = archive_session(session)
        except SessionGone:
            raise NotFound("no such session") from None
        return Response(show(SessionArchived, session, alreadyArchived=not archived))


class PruneSessions(APIView):
    """`/sessions/prune`"""

    @extend_schema(request=PruneBody, responses={200: Pruned})
    def post(self, request: Request) -> Response:
        """Delete the caller's spare sessions: of those that share a routing name all but one.

        The live one stays, else the last seen; one that carries an agent stays besides.
        """
        wanted = PruneBody.read(request).validated_data
        name = (wanted.get("routingName") or "").removeprefix("@") or None
        planned, gone = plan_pruning(caller_of(request).pk, name), None
        if not wanted["dryRun"]:
            gone = delete_sessions([session.pk for session in planned.spare], only_offline=True)
        return Response(_show_pruned(planned, gone))


def _show_pruned(planned: PruningPlan, gone: Deletion | None) -> Pruned:
    deleted = [one for one in planned.spare if gone is None or one.pk in gone.session_ids]
    return {
        "ok": True,
        "dryRun": gone is None,
        "kept": [show(SessionKept, one) for one in planned.kept],
        "deleted": [show(SessionPruned, one, wasArchived=one.archived_at is not None) for one in deleted],
        "blobsSwept": gone.blobs_swept if gone else 0,
        "bytesFreed": gone.bytes_freed if gone else 0,
    }
