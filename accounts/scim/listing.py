"""Lists of users and groups of SCIM: filters, order and pages.

The database finds the rows of the filters that identity providers send (a name, a key, a member). What else a
filter says is evaluated by the library over these rows, of which there may be MAX_EVALUATED.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from scim2_models import ListResponse, SearchRequest, TooManyException
from scim2_models.path import CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator, ValuePath

from accounts.scim.resources import MAX_RESULTS
from kit.ids import read_row_id

MAX_EVALUATED = 5_000
LOWER = {"username": "user_name", "displayname": "display_name"}  # stored columns, compared in any case

Show = Callable[[Iterable[Any]], Sequence[Any]]


def list_resources(
    model: type[Any], rows: QuerySet[Any], search: "SearchRequest[Any]", show: Show
) -> "ListResponse[Any]":
    """One page of the resources that a search finds, in the order of their keys or as the search says.

    `rows`: of all resources; `show`: makes resources of rows.

    Raises:
        TooManyException: the database cannot find the rows alone, and there are too many to evaluate the filter.
    """
    rows = rows.order_by("pk")
    first, count = search.start_index_0 or 0, MAX_RESULTS if search.count is None else search.count
    last = first + min(count, MAX_RESULTS)
    if search.filter is None and search.sort_by is None:
        total, page = rows.count(), show(rows[first:last])
    else:
        terms = list(_split(search.filter.ast)) if search.filter is not None else []
        stored = {column.name for column in rows.model._meta.concrete_fields}
        lowered = {name: column for name, column in LOWER.items() if column in stored}
        conditions = [one for term in terms if (one := _find_condition(term, lowered)) is not None]
        found = rows.alias(**{f"lower_{column}": Lower(column) for column in lowered.values()}).filter(*conditions)
        if found.count() > MAX_EVALUATED:
            raise TooManyException(detail=f"the filter leaves more than {MAX_EVALUATED} resources: name one")
        resources = [one for one in show(found) if search.filter is None or search.filter.match(one)]
        resources = search.sort(resources)
        total, page = len(resources), resources[first:last]
    shape: Any = ListResponse[model]  # type: ignore[valid-type]
    answered: ListResponse[Any] = shape(
        total_results=total, start_index=first + 1, items_per_page=len(page), resources=list(page)
    )
    return answered


def _split(node: FilterNode) -> Iterator[FilterNode]:
    """The parts of a filter that must all hold."""
    if isinstance(node, LogicalExpr) and node.op == LogicalOperator.and_:
        for term in node.terms:
            yield from _split(term)
    else:
        yield node


def _find_condition(node: FilterNode, lowered: Mapping[str, str]) -> Q | None:
    """The condition for the database that a part of a filter means; None: the library evaluates the part alone.

    `lowered`: columns that are compared in any case, by the names of their attributes.
    """
    name = ""
    if isinstance(node, ValuePath) and isinstance(node.val_filter, Comparison):
        name, node = f"{node.attr_path.attr}.", node.val_filter
    if not isinstance(node, Comparison) or node.op != CompareOperator.eq or not isinstance(node.value, str):
        return None
    path = node.attr_path
    name = (name + path.attr + (f".{path.sub_attr}" if path.sub_attr else "")).lower()
    value = node.value
    if name in lowered:
        # SQLite makes only ASCII letters small.
        return Q(**{f"lower_{lowered[name]}": value.lower()}) if value.isascii() else None
    if name == "externalid":
        return Q(external_id=value)
    if name == "id":
        return Q(pk=_read_key(value))
    if name in ("members", "members.value"):
        return Q(group__memberships__by_scim=True, group__memberships__user__scim_user__pk=_read_key(value))
    return None


def _read_key(value: str) -> int:
    key = read_row_id(value)
    return key if key is not None else 0  # no row has the key 0
