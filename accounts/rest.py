"""The base of all calls of the native REST API: authentication, strict JSON, errors as `{"error", "message"}`."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast

import msgspec
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db.models import Model, QuerySet
from django.http import Http404
from rest_framework import exceptions, serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.fields import empty
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from accounts.acting import name_maker
from accounts.authn import (
    AGENT_KINDS,
    SAFE_METHODS,
    Identity,
    OutOfScope,
    TokenScope,
    find_caller,
    find_holder,
    presented,
)
from accounts.error_responses import (
    CODES,
    INTERNAL,
    INTERNAL_TEXT,
    UNAVAILABLE_TEXT,
)
from accounts.models import User
from accounts.signing import NoKey
from kit import strict_json
from kit.asgi import MAX_BODY_BYTES, RETRY_SOON, RequestRefused, is_json, too_large
from kit.columns import make_rest_field
from kit.rows import fields_of
from kit.sql import DATABASE_UNAVAILABLE

logger = logging.getLogger(__name__)

Row = TypeVar("Row", bound=Model)

UNKNOWN_FIELD = "there is no such field"
CANNOT_SIGN = "this hub cannot sign a JWT now: tell its operator; a token that is no JWT can be made"
NO_CREDENTIAL = "sign in: send a live token of the right kind as Authorization: Bearer"
MISSING_FIELD = "This field is required."
UNKNOWN_NAMED = 10
MAX_NAMED_CHARS = 64
DATABASE_REFUSAL = RequestRefused(503, "unavailable", UNAVAILABLE_TEXT, RETRY_SOON)


class MsgspecRenderer(JSONRenderer):
    """JSON by msgspec: compact, in an eighth of the time of `json`, during which no other thread runs."""

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        """The JSON of a response; empty for None."""
        return b"" if data is None else msgspec.json.encode(data, enc_hook=_plain)


def _plain(value: object) -> object:
    """What msgspec encodes in place of a value: the text of a subclass of `str`, or what DRF's encoder makes."""
    return str(value) if isinstance(value, str) else _ENCODER.default(value)


_ENCODER = JSONEncoder()


class Conflict(exceptions.APIException):
    """The request asks for a name that is taken, or contradicts the present state."""

    status_code = 409
    default_detail = "this is taken"


class RefusedByHub(exceptions.APIException):
    """A `RequestRefused` as an exception of DRF."""

    def __init__(self, refused: RequestRefused) -> None:
        super().__init__(str(refused))
        self.status_code = refused.status
        self.public_code = refused.code
        self.headers = {str(name, "ascii"): str(value, "ascii") for name, value in refused.headers}


class CredentialAuthentication(BaseAuthentication):
    """The user of a Bearer token or cookie, as everywhere in the hub; there is no CSRF token."""

    def authenticate(self, request: Request) -> tuple[User, Identity] | None:
        """The caller and the identity of the credential; None, and so a 401, without a valid credential."""
        caller = find_caller(request._request)
        if caller is not None and caller.user.is_group:
            name_maker(caller.user, caller.identity.credential_id)
            request._request.acting_account = caller.user  # type: ignore[attr-defined]
        return (caller.user, caller.identity) if caller else None

    def authenticate_header(self, request: Request) -> str:
        """Makes a missing caller a 401 instead of a 403."""
        return "Bearer"


class ChannelAuthentication(BaseAuthentication):
    """Authenticates an agent's program by the channel token of its socket, as a Bearer token; agents have no
    cookie.
    """

    def authenticate(self, request: Request) -> tuple[User, Identity] | None:
        """The owner and the identity of the token; None, and so a 401, without a valid token."""
        token = presented({"authorization": request.headers.get("Authorization", "")})
        caller = find_holder(token, *AGENT_KINDS)
        return (caller.user, caller.identity) if caller else None

    def authenticate_header(self, request: Request) -> str:
        """Makes a missing caller a 401 instead of a 403."""
        return "Bearer"


class StrictJSONParser(JSONParser):
    """Reads JSON by `kit.strict_json`; each field checks its own strings."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The decoded body."""
        try:
            return strict_json.read(stream.read(), takes_any_text=True)
        except strict_json.NotJson:
            raise exceptions.ParseError("the body is not JSON") from None
        except strict_json.UnreadableText as unsound:
            raise exceptions.ParseError(str(unsound)) from None


class JSONNegotiation(DefaultContentNegotiation):
    """Accepts the media types of JSON that all surfaces accept."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """The parser of the request's media type; None: 415."""
        if is_json(request.content_type):
            return next((parser for parser in parsers if isinstance(parser, StrictJSONParser)), None)
        return super().select_parser(request, parsers)


class JSONForAnyAccept(JSONNegotiation):
    """Ignores the Accept header: a browser that wants a page is redirected to one."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """The renderer of JSON, which is the only one."""
        return renderers[0], renderers[0].media_type


class Body(serializers.Serializer[Any]):
    """A body, or an object in one, that names nothing but its fields: what would be ignored is an error.

    An object inside of a body is whole, also where the body may name some fields only.
    """

    @classmethod
    def read(cls, request: Request, *, partial: bool = False) -> Self:
        """The checked body of a request. `partial`: the body may name any part of the fields.

        Raises:
            ValidationError: the body is wrong.
        """
        body = cls(data=request.data, partial=partial)
        body.is_valid(raise_exception=True)
        return body

    def to_internal_value(self, data: Any) -> Any:
        """Refuse unknown fields, and validate as DRF does."""
        if isinstance(data, Mapping) and (unknown := data.keys() - self.fields.keys()):
            named = sorted(_printable(name) for name in unknown)[:UNKNOWN_NAMED]
            raise exceptions.ValidationError(dict.fromkeys(named, UNKNOWN_FIELD))
        if self.root is not self and isinstance(data, Mapping):
            required = [name for name, field in self.fields.items() if field.required and name not in data]
            if required:
                raise exceptions.ValidationError(dict.fromkeys(required, MISSING_FIELD))
            data = {name: one.default for name, one in self.fields.items() if one.default is not empty} | {**data}
        return super().to_internal_value(data)


class ColumnBody(Body):
    """A body that writes the columns `Meta.columns` of `Meta.model`, by their names in `Meta.shape`.

    A column that the shape does not show has no field. A field that the class declares replaces the one of a
    column, or is added. Null is the empty text of a column without null that the shape shows as null.
    """

    _without_null: ClassVar[frozenset[str]]

    def __init_subclass__(cls, **options: Any) -> None:
        """Declare the fields of the columns in their order, then the fields that the class adds."""
        super().__init_subclass__(**options)
        meta: Any = cls.Meta  # type: ignore[attr-defined]
        names = {field.path: (name, field.is_nullable) for name, field in fields_of(meta.shape).items()}
        columns = [meta.model._meta.get_field(name) for name in meta.columns]
        shown = [(one, *names[path]) for one in columns if (path := (one.name,)) in names]
        made = {name: make_rest_field(one, name, is_nullable=is_nullable) for one, name, is_nullable in shown}
        cls._declared_fields = made | cls._declared_fields
        cls._without_null = frozenset(one.name for one in columns if not one.null)

    def to_internal_value(self, data: Any) -> Any:
        """Validate as DRF does; null becomes the empty text in a column without null."""
        values = super().to_internal_value(data)
        for name in self._without_null & values.keys():
            if values[name] is None:
                values[name] = ""
        return values


def check_no_fields(request: Request) -> None:
    """Refuse a body with fields, for a call that takes none; an empty object is accepted."""
    Body.read(request)


def _printable(name: object) -> str:
    return str(name)[:MAX_NAMED_CHARS].encode("ascii", "backslashreplace").decode("ascii")


def caller_of(request: Request) -> User:
    """The signed-in user of a request to a view that requires one."""
    return cast(User, request.user)


def get_one(rows: QuerySet[Row], text: str) -> Row:
    """The first of these rows.

    Raises:
        NotFound: there is no row; `text` must not tell whether another owner has one.
    """
    row = rows.first()
    if row is None:
        raise exceptions.NotFound(text)
    return row


def identity_of(request: Request) -> Identity:
    """The credential of a signed-in user's request."""
    return cast(Identity, request.auth)


class HasScope(BasePermission):
    """The default permission: a view takes `read` where nothing changes, else `publish`, or its own `scope`.

    A view whose `scope` is None takes each scope but `connect`.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """True if the credential has the scope; otherwise raises OutOfScope."""
        by_method = TokenScope.READ if request.method in SAFE_METHODS else TokenScope.PUBLISH
        scope: TokenScope | None = getattr(view, "scope", by_method)
        if isinstance(request.auth, Identity) and not request.auth.may(scope):
            raise OutOfScope(scope)
        return True


class HasUnlimitedToken(BasePermission):
    """For calls that make or revoke tokens: by them a limited token could get beyond its scopes."""

    message = "this takes a user's token that is not limited to scopes or to an agent"

    def has_permission(self, request: Request, view: Any) -> bool:
        """True if the credential of the request is not limited, and not one of a group, which would outlive its
        maker.
        """
        is_limited = not isinstance(request.auth, Identity) or request.auth.is_limited
        return not is_limited and not caller_of(request).is_group


class HasBrowserSession(BasePermission):
    """For calls that apps and scripts must not make on their user's behalf."""

    message = "this takes a sign-in session: no app token does it"

    def has_permission(self, request: Request, view: Any) -> bool:
        """True if the credential of the request is a session."""
        identity = request.auth
        return isinstance(identity, Identity) and identity.kind == "session"


def error_response(failure: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler: responds with a code and a sentence; unexpected exceptions show no details."""
    failure = _as_api_failure(failure)
    if not isinstance(failure, exceptions.APIException):
        logger.error("rest.failed", exc_info=failure, extra={"view": type(context.get("view")).__name__})
        return Response({"error": INTERNAL, "message": INTERNAL_TEXT}, status=500)
    code = getattr(failure, "public_code", CODES.get(failure.status_code, INTERNAL))
    detail = NO_CREDENTIAL if isinstance(failure, exceptions.NotAuthenticated) else failure.detail
    # A sentence may quote a string of the request, which may hold a lone surrogate.
    message = " ".join(_sentences(detail)).encode(errors="backslashreplace").decode()
    body = {"error": code, "message": message}
    return Response(body, status=failure.status_code, headers=_headers(failure))


def _as_api_failure(failure: Exception) -> Exception:
    """An exception of Django as the exception of DRF with the same meaning."""
    match failure:
        case NoKey():
            return RefusedByHub(RequestRefused(503, "unavailable", CANNOT_SIGN))
        case Http404():
            return exceptions.NotFound()
        case PermissionDenied():
            return exceptions.PermissionDenied()
        case RequestRefused():
            return RefusedByHub(failure)
        case RequestDataTooBig():
            return RefusedByHub(too_large(MAX_BODY_BYTES))
        case SuspiciousOperation():
            return exceptions.ParseError()
    if isinstance(failure, DATABASE_UNAVAILABLE):
        logger.warning("rest.database_away", extra={"failure": type(failure).__name__})
        return RefusedByHub(DATABASE_REFUSAL)
    return failure


def _headers(failure: exceptions.APIException) -> dict[str, str]:
    wait, challenge = getattr(failure, "wait", None), getattr(failure, "auth_header", None)
    headers: dict[str, str] = getattr(failure, "headers", {})
    headers = headers | ({"Retry-After": str(int(wait))} if wait else {})
    return headers | ({"WWW-Authenticate": challenge} if challenge else {})


def _sentences(detail: Any, field: str = "") -> Iterator[str]:
    """Yield each message of a nested detail, with the name of its field."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _sentences(inner, _inside(field, name))
    elif isinstance(detail, list):
        for inner in detail:
            yield from _sentences(inner, field)
    else:
        yield f"{field}: {detail}" if field else str(detail)


def _inside(field: str, name: object) -> str:
    if name == "non_field_errors":
        return field
    if isinstance(name, int):
        return f"{field}[{name}]"
    return f"{field}.{name}" if field else str(name)
