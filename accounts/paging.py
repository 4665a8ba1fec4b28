"""Lists in pages: `?limit=` and `?offset=`, always `{"items": […], "total": n}`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

MAX_LIMIT = 1000
FARTHEST = 10**9


class PageQuery(serializers.Serializer[Any]):
    """The part of a list to show. Without a limit, or with one above the highest, the highest is used.

    A client that never pages therefore sees all rows up to that limit.
    """

    limit = serializers.IntegerField(required=False, min_value=1)
    offset = serializers.IntegerField(default=0, min_value=0, max_value=FARTHEST)


def page_query(limit: int) -> type[PageQuery]:
    """Make the query parameters of a list with this default number of rows."""
    return type("PageQuery", (PageQuery,), {"limit": serializers.IntegerField(default=limit, min_value=1)})


def read_query(serializer: type[serializers.Serializer[Any]], request: Request) -> dict[str, Any]:
    """The checked query string of a request."""
    query = serializer(data=request.query_params)
    query.is_valid(raise_exception=True)
    return dict(query.validated_data)


def read_filters(serializer: type[PageQuery], request: Request) -> dict[str, Any]:
    """The conditions of a list that the query string of a request names, by the `source` of each field."""
    paging = PageQuery().fields
    return {name: value for name, value in read_query(serializer, request).items() if name not in paging}


def page(
    request: Request,
    rows: QuerySet[Any],
    show: Callable[[Sequence[Any]], Sequence[Any]],
    which: type[PageQuery] = PageQuery,
    *,
    most: int = MAX_LIMIT,
) -> Response:
    """One page of at most `most` rows; `show` gets up to MAX_LIMIT at once, to fetch related rows together."""
    query = read_query(which, request)
    start, limit = query["offset"], min(query.get("limit", most), most)
    items = [item for found in _in_parts(rows[start : start + limit], limit) for item in show(found)]
    return Response({"items": items, "total": rows.count()})


def _in_parts(rows: QuerySet[Any], most: int) -> Iterator[list[Any]]:
    """The rows of one query, MAX_LIMIT at a time: models take more memory than what is shown of them."""
    if most <= MAX_LIMIT:
        yield list(rows)
        return
    found = rows.iterator(chunk_size=MAX_LIMIT)
    while part := list(islice(found, MAX_LIMIT)):
        yield part
