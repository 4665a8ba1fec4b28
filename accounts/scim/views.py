"""Responds to the identity provider's requests (RFC 7644). `accounts/scim_gate.py` has checked the token."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from pydantic import ValidationError
from scim2_models import (
    Context,
    Error,
    InvalidFilterException,
    InvalidSyntaxException,
    ListResponse,
    NotFoundException,
    NotImplementedException,
    PatchOp,
    Reference,
    ResourceType,
    ResponseParameters,
    Schema,
    SCIMException,
    SearchRequest,
)

from accounts import settings
from accounts.errors import SignInRefused
from accounts.models import ScimGroup, ScimToken, ScimUser
from accounts.scim import groups, users
from accounts.scim.listing import list_resources
from accounts.scim.resources import CONFIG, PROVIDER, DirectoryGroup, DirectoryUser
from accounts.scim_gate import MEDIA_TYPE, scim_error
from kit import strict_json
from kit.ids import read_row_id

MAX_FILTER_CHARS = 2_000
MAX_INDEX = 10**9
CONFLICT = 409
QUERY = {"filter", "startIndex", "count", "sortBy", "sortOrder", "attributes", "excludedAttributes"}
MEDIA_TYPES = re.compile(r"application/(scim\+)?json\Z", re.IGNORECASE)
READ_ONLY = {"id", "meta"}  # of a new resource: RFC 7644 ignores them, the library refuses them


@dataclass(frozen=True, slots=True)
class ScimEndpoint:
    """The functions behind the addresses of one type of resource.

    `show`: makes resources of rows; `defaults`: of a row, or of a new resource (None), the required attributes
    that a request may leave out.
    """

    model: type[Any]
    rows: Callable[[], QuerySet[Any]]
    show: Callable[[Iterable[Any]], Sequence[Any]]
    defaults: Callable[[Any], dict[str, Any]]
    create: Callable[[Any, ScimToken], Any]
    patch: Callable[[Any, Any], Any]
    change: Callable[[Any, Any, ScimToken], None]
    delete: Callable[[Any, ScimToken], None]


def answer(request: HttpRequest, rest: str, token: ScimToken) -> HttpResponse:
    """The response to a request that has the token; `rest`: the address below `/scim/v2/`."""
    try:
        with PROVIDER:
            return _route(request, [part for part in rest.split("/") if part], token)
    except SCIMException as refused:
        return _refuse(refused.to_error())
    except ValidationError as wrong:
        return _refuse(Error.from_validation_errors(wrong)[0])
    except strict_json.UnreadableText as unread:
        return scim_error(400, str(unread), "invalidSyntax")
    except RequestDataTooBig:
        return scim_error(413, "the body is too large")
    except SignInRefused as refused:  # the last maintainer of a group, or a limit of an account
        return scim_error(CONFLICT, str(refused))
    except RecursionError:
        return scim_error(400, "nested too deeply", "invalidValue")


def _route(request: HttpRequest, parts: list[str], token: ScimToken) -> HttpResponse:
    match parts:
        case [("ServiceProviderConfig" | "ResourceTypes" | "Schemas"), *_] if request.method != "GET":
            return _not_allowed("GET")
        case ["ServiceProviderConfig"]:
            return _send(_config().model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))
        case [("ResourceTypes" | "Schemas") as kind]:
            return _send_discovered(request, _list_discovered(kind))
        case [("ResourceTypes" | "Schemas") as kind, key]:
            found = next((one for one in _list_discovered(kind) if str(one.id) == key), None)
            if found is None:
                raise NotFoundException(detail=f"there is no {kind}/{key}")
            return _send(found.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE))
        case [name] if name in ENDPOINTS:
            return _answer_list(request, ENDPOINTS[name], token)
        case [name, ".search"] if name in ENDPOINTS:
            if request.method != "POST":
                return _not_allowed("POST")
            return _search(ENDPOINTS[name], _read_body(request))
        case [name, key] if name in ENDPOINTS:
            return _answer_one(request, ENDPOINTS[name], key, token)
        case ["Me" | "Bulk" | ".search", *_]:
            raise NotImplementedException(detail=f"the hub has no /{parts[0]}")
    raise NotFoundException(detail="there is nothing at this address")


def _answer_list(request: HttpRequest, endpoint: ScimEndpoint, token: ScimToken) -> HttpResponse:
    if request.method == "GET":
        return _search(endpoint, _read_query(request))
    if request.method != "POST":
        return _not_allowed("GET, POST")
    body = _read_body(request)
    sent = {name: value for name, value in body.items() if name.lower() not in READ_ONLY}
    sent = _complete(sent, endpoint.defaults(None))
    given = endpoint.model.model_validate(sent, scim_ctx=Context.RESOURCE_CREATION_REQUEST)
    with _writing(token):
        row = endpoint.create(given, token)
    made = _send_row(request, endpoint, row, Context.RESOURCE_CREATION_RESPONSE, status=201)
    made["Location"] = str(endpoint.show([row])[0].meta.location)
    return made


def _answer_one(request: HttpRequest, endpoint: ScimEndpoint, key: str, token: ScimToken) -> HttpResponse:
    match request.method:
        case "GET":
            return _send_row(request, endpoint, _find(endpoint, key), Context.RESOURCE_QUERY_RESPONSE)
        case "PUT":
            body = _read_body(request)
            with _writing(token):
                row = _find(endpoint, key)
                sent = _complete(body, endpoint.defaults(row))
                given = endpoint.model.model_validate(sent, scim_ctx=Context.RESOURCE_REPLACEMENT_REQUEST)
                endpoint.change(row, given, token)
            return _send_row(request, endpoint, row, Context.RESOURCE_REPLACEMENT_RESPONSE)
        case "PATCH":
            patched = PatchOp[endpoint.model]  # type: ignore[name-defined]
            patch = patched.model_validate(_read_body(request), scim_ctx=Context.RESOURCE_PATCH_REQUEST)
            with _writing(token):
                row = _find(endpoint, key)
                endpoint.change(row, endpoint.patch(row, patch), token)
            return _send_row(request, endpoint, row, Context.RESOURCE_PATCH_RESPONSE)
        case "DELETE":
            with _writing(token):
                endpoint.delete(_find(endpoint, key), token)
            return HttpResponse(status=204)
    return _not_allowed("GET, PUT, PATCH, DELETE")


def _complete(body: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """A body with the defaults of what is missing; names of attributes are equal in any case."""
    named = {name.lower() for name in body}
    return body | {name: value for name, value in defaults.items() if name not in named}


@contextmanager
def _writing(token: ScimToken) -> Iterator[None]:
    """A transaction in which no other request of the identity provider writes."""
    with transaction.atomic():
        list(ScimToken.objects.select_for_update(no_key=True).filter(pk=token.pk).values_list("pk"))
        yield


def _search(endpoint: ScimEndpoint, asked: Mapping[str, Any]) -> HttpResponse:
    text = asked.get("filter")
    if isinstance(text, str) and (len(text) > MAX_FILTER_CHARS or "\0" in text):
        raise InvalidFilterException(detail=f"filter: want at most {MAX_FILTER_CHARS} characters, without NUL")
    search = SearchRequest[endpoint.model].model_validate(dict(asked))  # type: ignore[name-defined]
    search.start_index = min(search.start_index or 1, MAX_INDEX)
    found = list_resources(endpoint.model, endpoint.rows(), search, endpoint.show)
    return _send(found.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=search))


def _find(endpoint: ScimEndpoint, key: str) -> Any:
    number = read_row_id(key)
    row = endpoint.rows().filter(pk=number).first() if number is not None else None
    if row is None:
        raise NotFoundException(detail=f"there is no resource {key[:100]!r}")
    return row


def _read_query(request: HttpRequest) -> dict[str, str]:
    return {name: str(value) for name, value in request.GET.items() if name in QUERY}


def _read_body(request: HttpRequest) -> dict[str, Any]:
    content_type = (request.content_type or "").strip()
    if content_type and not MEDIA_TYPES.match(content_type):
        raise _UnsupportedMediaType(detail="send application/scim+json")
    body = strict_json.read(request.body)
    if not isinstance(body, dict):
        raise InvalidSyntaxException(detail="the body is no JSON object")
    return body


class _UnsupportedMediaType(SCIMException):
    status = 415


def _send_row(
    request: HttpRequest, endpoint: ScimEndpoint, row: Any, context: Context, *, status: int = 200
) -> HttpResponse:
    asked = {name: value for name, value in _read_query(request).items() if name.lower().endswith("attributes")}
    chosen = ResponseParameters[endpoint.model].model_validate(asked)  # type: ignore[name-defined]
    return _send(endpoint.show([row])[0].model_dump(scim_ctx=context, response_parameters=chosen), status)


def _send_discovered(request: HttpRequest, found: Sequence[Any]) -> HttpResponse:
    if "filter" in request.GET:  # RFC 7644, section 4
        return scim_error(403, "this list takes no filter")
    resources = [one.model_dump(scim_ctx=Context.RESOURCE_QUERY_RESPONSE) for one in found]
    count = len(resources)
    head = {
        "schemas": [str(ListResponse.__schema__)],
        "totalResults": count,
        "startIndex": 1,
        "itemsPerPage": count,
    }
    return _send(head | {"Resources": resources})


def _list_discovered(kind: str) -> list[Any]:
    found: list[ResourceType] | list[Schema]
    if kind == "ResourceTypes":
        found = [one.model_copy(deep=True) for one in PROVIDER.resource_types]
    else:
        found = [one.model_copy(deep=True) for one in PROVIDER.schemas]
        for schema in found:
            schema.name = str(schema.id).rpartition(":")[2]
    for one in found:
        one.meta = _meta(kind.removesuffix("s"), f"{kind}/{one.id}")
    return found


def _config() -> Any:
    config = CONFIG.model_copy(deep=True)
    config.documentation_uri = Reference(f"{settings.PUBLIC_URL}/docs/provide-users-by-scim")
    config.meta = _meta("ServiceProviderConfig", "ServiceProviderConfig")
    return config


def _meta(kind: str, address: str) -> Any:
    return {"resourceType": kind, "location": f"{settings.PUBLIC_URL}/scim/v2/{address}"}


def _send(body: Mapping[str, Any], status: int = 200) -> HttpResponse:
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)


def _refuse(error: Error) -> HttpResponse:
    return scim_error(error.status or 400, (error.detail or "")[:1000], error.scim_type or "")


def _not_allowed(allowed: str) -> HttpResponse:
    refused = scim_error(405, f"this address takes {allowed}")
    refused["Allow"] = allowed
    return refused


def _patch_user(row: ScimUser, patch: "PatchOp[DirectoryUser]") -> DirectoryUser:
    resource = users.show_user(row, as_said=True)
    patch.patch(resource)
    return resource


def _patch_group(row: ScimGroup, patch: "PatchOp[DirectoryGroup]") -> DirectoryGroup:
    resource = groups.show_groups([row])[0]
    groups.apply_patch(resource, patch)
    return resource


ENDPOINTS = {
    "Users": ScimEndpoint(
        DirectoryUser,
        lambda: ScimUser.objects.provided().filter(user__closed_at=None).select_related("user"),
        lambda rows: [users.show_user(row) for row in rows],
        lambda row: {"active": row is None or row.is_active},
        users.create_user,
        _patch_user,
        users.change_user,
        users.delete_user,
    ),
    "Groups": ScimEndpoint(
        DirectoryGroup,
        lambda: (
            ScimGroup.objects.provided().filter(group__account__closed_at=None).select_related("group__account")
        ),
        groups.show_groups,
        lambda row: {},
        groups.create_group,
        _patch_group,
        groups.change_group,
        groups.delete_group,
    ),
}
