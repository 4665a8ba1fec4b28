"""Several of the caller's agents are changed at once."""

from typing import Any, Literal, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, caller_of
from agents.core.bulk_changes import MOST_AT_ONCE, BulkAction, BulkReport, change_agents

LARGEST_ID = 2**63 - 1


class ApiAgentResult(TypedDict):
    """What became of an agent. `same`: it was so already; `kept`: an administrator halted it, and it stays so."""

    id: int
    handle: str
    result: Literal["changed", "same", "kept"]


class ApiBulkReport(TypedDict):
    """What became of each agent, by handle. `absent`: ids that are not of the caller's agents."""

    results: list[ApiAgentResult]
    absent: list[int]


class BulkChange(Body):
    """The body of POST."""

    action = serializers.ChoiceField(choices=[one.value for one in BulkAction])
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        allow_empty=False,
        max_length=MOST_AT_ONCE,
    )


class BulkChanges(APIView):
    """`/agents/bulk`"""

    @extend_schema(request=BulkChange, responses=ApiBulkReport)
    def post(self, request: Request) -> Response:
        """Publish, unpublish, halt or resume agents of the caller's; the report has each. Again is fine."""
        body = BulkChange(data=request.data)
        body.is_valid(raise_exception=True)
        wanted: dict[str, Any] = body.validated_data
        report = change_agents(caller_of(request), wanted["ids"], BulkAction(wanted["action"]))
        return Response(_show(report))


def _show(report: BulkReport) -> ApiBulkReport:
    results: list[ApiAgentResult] = [
        {"id": one.agent.pk, "handle": one.agent.handle, "result": one.result.value} for one in report.results
    ]
    return {"results": results, "absent": list(report.absent)}
