"""REST views of halts, blocked callers, changes of several agents, and decisions on changed cards."""

from typing import Annotated, Literal, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page
from accounts.rest import Body, Conflict, StrictJSONParser, caller_of
from agents.api.admin import StaffView
from agents.api.agents import get_own_agent, show_agent
from agents.api.remote import ApiCardChange, CardDecision
from agents.api.shapes import ApiAgent
from agents.core import halt_rules
from agents.core.bulk_changes import MAX_AT_ONCE, BulkAction, change_agents
from agents.core.directory import (
    UnknownLogin,
    block_caller,
    get_users_by_login,
    unblock_caller,
)
from agents.links.remote.approval import CARD_DECISIONS, ChangedCard, NotWaiting, find_changed_card
from agents.models import Agent, CallerBlock, Halt, RemoteServer
from agents.models.halt import REASON_CHARS
from kit.describe import ErrorBody, Page, Time
from kit.rows import RowSource, show, show_each


class ApiBlock(TypedDict):
    """A caller whom the owner does not answer."""

    login: Annotated[str, RowSource("caller.login")]
    createdAt: Time


class Unblocked(TypedDict):
    """`removed`: 1, or 0 when there was no block."""

    ok: Literal[True]
    login: str
    removed: int


class NewBlock(Body):
    """The body of POST."""

    login = serializers.CharField(max_length=64)


class Blocks(APIView):
    """`/blocks`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiBlock])
    def get(self, request: Request) -> Response:
        """The users that the caller blocks, newest first."""
        own = CallerBlock.objects.filter(owner=caller_of(request)).select_related("caller")
        return page(request, own.order_by("-pk"), show_each(ApiBlock))

    @extend_schema(request=NewBlock, responses={201: ApiBlock, 200: ApiBlock, 404: ErrorBody})
    def post(self, request: Request) -> Response:
        """Block a user: their asks of the caller's agents and sessions are refused.

        Repeating it changes nothing.
        """
        body = NewBlock.read(request)
        owner = caller_of(request)
        try:
            [caller] = get_users_by_login([body.validated_data["login"]])
        except UnknownLogin as unknown:
            raise NotFound(str(unknown)) from None
        if caller.pk == owner.pk:
            raise ValidationError({"login": "this is you: you cannot block yourself"})
        made, is_new = block_caller(owner, caller)
        return Response(show(ApiBlock, made), status=201 if is_new else 200)


class OneBlock(APIView):
    """`/blocks/{login}`"""

    @extend_schema(responses={200: Unblocked})
    def delete(self, request: Request, login: str) -> Response:
        """Unblock a user; `removed` is 0 when they were not blocked."""
        caller = User.objects.named(login)
        removed = unblock_caller(caller_of(request), caller) if caller else 0
        unblocked: Unblocked = {"ok": True, "login": login, "removed": removed}
        return Response(unblocked)


class ApiHalt(TypedDict):
    """A halted agent or user, with the reason and who halted it; `liftedAt` is null while the halt lasts.

    `name`: the agent's handle, or the login of the owner or caller. `madeBy` is null for the command line.
    """

    id: int
    kind: Literal["agent", "owner", "caller"]
    name: str
    reason: str
    byStaff: bool
    madeBy: Annotated[str | None, RowSource("made_by.login")]
    madeAt: Time
    liftedBy: Annotated[str | None, RowSource("lifted_by.login")]
    liftedAt: Time | None


class Why(Body):
    """The body of an owner's halt."""

    reason = serializers.CharField(max_length=REASON_CHARS, default="", allow_blank=True)


class NewHalt(Why):
    """The body of an administrator's: `name` is a handle, `owner/slug`, or a login."""

    kind = serializers.ChoiceField(choices=Halt.Kind.choices)
    name = serializers.CharField(max_length=128)


class HaltAgent(APIView):
    """`/agents/{id}/halt`"""

    @extend_schema(request=Why, responses={201: ApiHalt, 200: ApiHalt})
    def post(self, request: Request, agent_id: int) -> Response:
        """Halt an agent of the caller's: asks are refused, open ones end, its socket closes. Again is fine."""
        agent = get_own_agent(agent_id, caller_of(request))
        return _made(*halt_rules.halt_own_agent(agent, Why.read(request).validated_data["reason"]))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, agent_id: int) -> Response:
        """Resume the agent; a repeated call succeeds. A halt by an administrator stays."""
        halt_rules.resume_own_agent(get_own_agent(agent_id, caller_of(request)))
        return Response(status=204)


class AdminHalts(StaffView):
    """`/admin/halts`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiHalt])
    def get(self, request: Request) -> Response:
        """Every halt there was, newest first."""
        halts = Halt.objects.select_related("agent", "user", "made_by", "lifted_by").order_by("-pk")
        return page(request, halts, lambda rows: [show_halt(one) for one in rows])

    @extend_schema(request=NewHalt, responses={201: ApiHalt, 200: ApiHalt, 404: ErrorBody})
    def post(self, request: Request) -> Response:
        """Halt an agent, all agents and sessions of an owner, or a caller's questions. Again is fine."""
        wanted = NewHalt.read(request).validated_data
        try:
            subject = halt_rules.get_halt_subject(wanted["kind"], wanted["name"])
        except halt_rules.NoSuchSubject as unknown:
            raise NotFound(str(unknown)) from None
        return _made(*halt_rules.halt_by_staff(subject, by=caller_of(request), reason=wanted["reason"]))


class AdminHalt(StaffView):
    """`/admin/halts/{id}`"""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, halt_id: int) -> Response:
        """Lift a halt, an owner's too; the row stays. Again is fine."""
        found = Halt.objects.filter(pk=halt_id)
        if not found.exists():
            raise NotFound("no such halt")
        halt_rules.lift_by_staff(found, by=caller_of(request))
        return Response(status=204)


def show_halt(one: Halt) -> ApiHalt:
    """The JSON of a halt whose agent and users are loaded."""
    return show(ApiHalt, one, name=one.agent.handle if one.agent else one.user.login if one.user else "")


def _made(made: Halt, is_new: bool) -> Response:
    return Response(show_halt(made), status=201 if is_new else 200)


class ApiAgentResult(TypedDict):
    """The result for one agent. `same`: no change was needed; `kept`: an administrator's halt stays."""

    id: Annotated[int, RowSource("agent.pk")]
    handle: Annotated[str, RowSource("agent.handle")]
    result: Literal["changed", "same", "kept"]


class ApiBulkReport(TypedDict):
    """The result for each agent, by handle. `absent`: ids that are not of the caller's agents."""

    results: list[ApiAgentResult]
    absent: list[int]


LARGEST_ID = 2**63 - 1


class BulkChange(Body):
    """The body of POST."""

    action = serializers.ChoiceField(choices=[one.value for one in BulkAction])
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        allow_empty=False,
        max_length=MAX_AT_ONCE,
    )


class BulkChanges(APIView):
    """`/agents/bulk`"""

    @extend_schema(request=BulkChange, responses=ApiBulkReport)
    def post(self, request: Request) -> Response:
        """Publish, unpublish, halt or resume agents of the caller's; the report has each. Again is fine."""
        wanted = BulkChange.read(request).validated_data
        report = change_agents(caller_of(request), wanted["ids"], BulkAction(wanted["action"]))
        return Response(show(ApiBulkReport, report))


class CardChange(APIView):
    """`/agents/{id}/card-change`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(responses={200: ApiCardChange})
    def get(self, request: Request, agent_id: int) -> Response:
        """The differences between the card by which the hub calls a remote server and its present card."""
        _, _, changed = _find_changed_card(agent_id, caller_of(request))
        return Response(show(ApiCardChange, changed))

    @extend_schema(request=CardDecision, responses={200: ApiAgent, 409: ErrorBody})
    def post(self, request: Request, agent_id: int) -> Response:
        """Call the server by the changed card, or keep the approved one; 409 when it changed again meanwhile."""
        owner = caller_of(request)
        agent, server, _ = _find_changed_card(agent_id, owner)
        decided = CardDecision.read(request).validated_data
        try:
            CARD_DECISIONS[decided["decision"]](server, decided["digest"])
        except NotWaiting:
            raise Conflict("another card waits: look at it first") from None
        return Response(show_agent(agent, viewer_id=owner.pk))


def _find_changed_card(agent_id: int, owner: User) -> tuple[Agent, RemoteServer, ChangedCard]:
    """An agent of this owner, its server and the server's changed card; raises NotFound if no such card waits."""
    agent = get_own_agent(agent_id, owner)
    server = RemoteServer.objects.filter(session_id=agent.session_id).first()
    changed = find_changed_card(server) if server else None
    if server is None or changed is None:
        raise NotFound("no changed card waits")
    return agent, server, changed
