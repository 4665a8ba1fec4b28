"""Callers whom an owner does not answer."""

from collections.abc import Sequence

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, caller_of
from agents.api.paging import PageQuery, page
from agents.api.shapes import ApiBlock, Unblocked
from agents.core.publishing import UnknownLogin, block, unblock, users_named
from agents.models import CallerBlock
from kit.describe import ErrorBody, Page
from kit.iso import iso


class NewBlock(Body):
    """The body of POST."""

    login = serializers.CharField(max_length=64)


class Blocks(APIView):
    """`/blocks`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiBlock])
    def get(self, request: Request) -> Response:
        """Whom the caller does not answer, newest first."""
        own = CallerBlock.objects.filter(owner=caller_of(request)).select_related("caller")
        return page(request, own.order_by("-pk"), _show_blocks)

    @extend_schema(request=NewBlock, responses={201: ApiBlock, 200: ApiBlock, 404: ErrorBody})
    def post(self, request: Request) -> Response:
        """Answer somebody no more: their asks of the caller's agents and sessions are refused. Again is fine."""
        body = NewBlock(data=request.data)
        body.is_valid(raise_exception=True)
        owner = caller_of(request)
        try:
            [caller] = users_named([body.validated_data["login"]])
        except UnknownLogin as unknown:
            raise NotFound(str(unknown)) from None
        if caller.pk == owner.pk:
            raise ValidationError({"login": "this is you: nobody blocks themselves"})
        made, is_new = block(owner, caller)
        return Response(_show(made), status=201 if is_new else 200)


class OneBlock(APIView):
    """`/blocks/{login}`"""

    @extend_schema(responses={200: Unblocked})
    def delete(self, request: Request, login: str) -> Response:
        """Answer somebody again; `removed` is 0 when they were not blocked."""
        removed = unblock(caller_of(request), login) if login.isprintable() else 0
        unblocked: Unblocked = {"ok": True, "login": login, "removed": removed}
        return Response(unblocked)


def _show_blocks(blocks: Sequence[CallerBlock]) -> list[ApiBlock]:
    return [_show(one) for one in blocks]


def _show(one: CallerBlock) -> ApiBlock:
    return {"login": one.caller.login, "createdAt": iso(one.created_at)}
