"""REST views of groups of failures, and of the rules for alerts."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, caller_of, get_one
from agents.core.alert_rules import HIGHEST, load_rules, remove_rule, set_rule
from agents.core.failure_groups import count_callers, describe_group, first_callers, set_state
from agents.models import FailureDay, FailureGroup, Turn
from agents.models.alert import MAX_OFFLINE_MINUTES, AlertKind
from kit.describe import ErrorBody, Items, Page, Time
from kit.rows import RowSource, show, show_each

EXAMPLES = 20
DAYS = 90
NO_FAILURE = "no such failure"


class ApiFailure(TypedDict):
    """Failures of one agent for one reason whose texts have the same shape.

    `text`: the shape of the agent's texts, or what the reason means. `reopenedAt`: when a resolved failure
    last occurred again. `callers`: how many met it.
    """

    id: int
    handle: Annotated[str, RowSource("agent.handle")]
    agentId: int
    reason: str
    text: str
    state: Literal["open", "resolved", "ignored"]
    count: int
    callers: int
    firstAt: Time
    lastAt: Time
    reopenedAt: Time | None
    resolvedAt: Time | None


class ApiFailureDay(TypedDict):
    """The failures of one UTC day."""

    day: str
    count: int


class ApiFailureCaller(TypedDict):
    """A caller who met the failure."""

    login: str
    count: int


class ApiFailedAsk(TypedDict):
    """One of the asks that failed. `text`: the agent's own words, while the hub keeps them."""

    routeId: Annotated[str, RowSource("chat_id")]
    askedAt: Time
    askerLogin: Annotated[str, RowSource("asker")]
    repeats: int
    text: Annotated[str | None, RowSource("failure_text")]


class ApiWholeFailure(ApiFailure):
    """The same with its days, oldest first, the callers who met it most, and its last asks, newest first."""

    days: list[ApiFailureDay]
    topCallers: list[ApiFailureCaller]
    recent: list[ApiFailedAsk]


class FailureQuery(PageQuery):
    """The failures to list."""

    agent = serializers.CharField(required=False, max_length=160, source="agent__handle_key")
    state = serializers.ChoiceField(required=False, choices=FailureGroup.State.values)

    def validate_agent(self, handle: str) -> str:
        """The handle as it is compared: in lower case, without its @."""
        return handle.removeprefix("@").lower()


class FailureState(Body):
    """The body of PATCH."""

    state = serializers.ChoiceField(choices=FailureGroup.State.values)


class Failures(APIView):
    """`/failures`"""

    @extend_schema(parameters=[FailureQuery], responses=Page[ApiFailure])
    def get(self, request: Request) -> Response:
        """Groups of failures of the caller's agents, the one that occurred last first."""
        own = FailureGroup.objects.owned_by(caller_of(request)).filter(**read_filters(FailureQuery, request))
        return page(request, own.select_related("agent").order_by("-last_at", "-pk"), _show_all, FailureQuery)


class OneFailure(APIView):
    """`/failures/{id}`"""

    @extend_schema(responses=ApiWholeFailure)
    def get(self, request: Request, failure_id: int) -> Response:
        """A group of failures of the caller's agents."""
        return Response(_show_whole(_get_own(failure_id, caller_of(request))))

    @extend_schema(request=FailureState, responses=ApiFailure)
    def patch(self, request: Request, failure_id: int) -> Response:
        """Resolve or ignore the failure, or open it again. Again is fine."""
        owner = caller_of(request)
        group = _get_own(failure_id, owner)
        set_state(group.pk, FailureState.read(request).validated_data["state"])
        return Response(_show_all([_get_own(failure_id, owner)])[0])


def _get_own(failure_id: int, owner: User) -> FailureGroup:
    own = FailureGroup.objects.owned_by(owner).select_related("agent")
    return get_one(own.filter(pk=failure_id), NO_FAILURE)


def _show_all(groups: Sequence[FailureGroup]) -> list[ApiFailure]:
    callers = count_callers(groups)
    return [show(ApiFailure, one, text=describe_group(one), callers=callers.get(one.pk, 0)) for one in groups]


def _show_whole(group: FailureGroup) -> ApiWholeFailure:
    days = FailureDay.objects.filter(group=group).order_by("-day").values_list("day", "count")[:DAYS]
    recent = Turn.objects.filter(failure_group=group).select_related("caller").order_by("-pk")[:EXAMPLES]
    return {
        **_show_all([group])[0],
        "days": [{"day": day.isoformat(), "count": count} for day, count in reversed(days)],
        "topCallers": [{"login": login, "count": count} for login, count in first_callers(group)],
        "recent": show_each(ApiFailedAsk)(recent),
    }


class ApiAlertRule(TypedDict):
    """A kind of alert that is on. `threshold`: minutes (`offline`), percent, or failures (`new_failure`)."""

    kind: Literal["offline", "budget", "failures", "new_failure"]
    threshold: int


class Threshold(Body):
    """The body of PUT."""

    threshold = serializers.IntegerField(min_value=1, max_value=MAX_OFFLINE_MINUTES)


class AlertRules(APIView):
    """`/alert-rules`"""

    @extend_schema(responses=Items[ApiAlertRule])
    def get(self, request: Request) -> Response:
        """The kinds of alert that the caller switched on."""
        rules = load_rules(caller_of(request))
        return Response({"items": [_show_rule(kind, threshold) for kind, threshold in rules.items()]})


class OneAlertRule(APIView):
    """`/alert-rules/{kind}`"""

    @extend_schema(request=Threshold, responses={200: ApiAlertRule, 404: ErrorBody})
    def put(self, request: Request, kind: str) -> Response:
        """Switch a kind of alert on, or change its threshold."""
        chosen = _read_kind(kind)
        threshold = Threshold.read(request).validated_data["threshold"]
        if threshold > HIGHEST[chosen]:
            raise serializers.ValidationError({"threshold": f"want at most {HIGHEST[chosen]}"})
        set_rule(caller_of(request), chosen, threshold)
        return Response(_show_rule(chosen, threshold))

    @extend_schema(responses={204: None, 404: ErrorBody})
    def delete(self, request: Request, kind: str) -> Response:
        """Switch a kind of alert off; its open alerts end. Again is fine."""
        remove_rule(caller_of(request), _read_kind(kind))
        return Response(status=204)


def _read_kind(kind: str) -> AlertKind:
    try:
        return AlertKind(kind)
    except ValueError:
        raise NotFound(f"want one of {', '.join(AlertKind.values)}") from None


def _show_rule(kind: AlertKind, threshold: int) -> ApiAlertRule:
    shown: Any = {"kind": kind.value, "threshold": threshold}
    return shown  # type: ignore[no-any-return]
