"""`POST /a2a/v1`, `GET /a2a/v1/status` and `GET /network/venues`."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl

import msgspec
from django.db import DatabaseError, InterfaceError

from accounts.authn import digest
from agents.core.ports import Clock
from agnt.service.asks.breakers import OPEN, find_breaker, find_hub_breaker
from agnt.service.intake.arrivals import Arrival, EnvelopeAnswer, make_refusal
from agnt.service.intake.rows import NETWORK_VERSION
from agnt.service.intake.runner import EnvelopeRunner
from agnt.service.key_checks import make_key_error
from agnt.service.keys import FoundKey, find_key_of
from agnt.wire.envelope import Envelope, make_field_error, read_body
from clawbridge.agnt.fields import (
    MALFORMED,
    MAX_BODY_BYTES,
    PROTOCOL,
    SIGNATURE_HEADER,
    EnvelopeRefused,
    ErrorCode,
    Json,
)
from kit.asgi import BODY_WITHIN_S, ClientLeft, HttpRequest, RequestRefused, Send, respond
from kit.async_db import DbCalls, db_call
from kit.clock import approximate_now, iso
from kit.newest import NewestEntries
from kit.tasks import TaskSet

CACHED_FOR_S = 1.0  # anyone may ask: the database is asked once a second at most, for the hub and for each network
KEYS_AT_ONCE, MAX_FINDING, FOUND_WITHIN_S = 4, 100, 2.0
MAX_KEPT = 1_000
UNKNOWN = "unknown"
PATH = "/a2a/v1"
STATUS_PATH = "/a2a/v1/status"
VENUES_PATH = "/network/venues"
LIST_PARAMETERS = ("category", "location", "limit")
PATHS = frozenset({PATH, f"{PATH}/", STATUS_PATH, VENUES_PATH})
REQUEST_TIMEOUT = 408
KEY_PREFIX = "agnt_live_"
KEY_NAMES = frozenset({"key", "api_key", "apikey", "token", "access_token", "authorization", "x-api-key"})
METHOD_NOT_ALLOWED = 405
UNENCRYPTED = frozenset({"http", "ws"})
MAX_LIMIT_DIGITS = 9
MAX_UNKNOWN_CHARS = 300
logger = logging.getLogger(__name__)


class StatusReports:
    """Makes reports: with a key on its network alone, without one on the hub. No report names a network."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        # By network, None for the hub: when its last query began, and the query, which requests share.
        self._queries: NewestEntries[int | None, tuple[float, asyncio.Task[str]]] = NewestEntries(MAX_KEPT)
        self._find_key = DbCalls(KEYS_AT_ONCE)
        self._finding = TaskSet()

    async def report_hub(self) -> EnvelopeAnswer:
        """Without a key: 503 while all networks that have venues have open breakers, or the database is away."""
        return _make(await self._find_cached(None))

    async def report_network(self, digest: str) -> EnvelopeAnswer:
        """With a key: 503 while the breaker of its network is open, or the database is away.

        No call of the key is counted. `digest`: of the key, empty for what is none.

        Raises:
            EnvelopeRefused: `unauthorized`, the key is not live.
        """
        try:
            key = await self._find_in_time(digest) if digest else None
        except (DatabaseError, InterfaceError, TimeoutError):
            return _make(UNKNOWN)
        if key is None:
            raise make_key_error()
        return _make(await self._find_cached(key.network_id))

    async def _find_in_time(self, digest: str) -> FoundKey | None:
        """The key of a digest. The query runs to its end, so that no more than `KEYS_AT_ONCE` take threads.

        Raises:
            TimeoutError: it takes long, or many wait.
        """
        if len(self._finding) >= MAX_FINDING:
            raise TimeoutError
        finding = self._finding.keep(self._find_key(find_key_of, digest), name="status key")
        async with asyncio.timeout(FOUND_WITHIN_S):
            return await asyncio.shield(finding)

    async def _find_cached(self, network_id: int | None) -> str:
        """The state of the breaker within the last second; requests at the same time share one query."""
        began_at, query = self._queries.get(network_id) or (0.0, None)
        if query is None or (query.done() and self._clock() - began_at >= CACHED_FOR_S):
            query = asyncio.get_running_loop().create_task(_find(network_id), name="status")
            self._queries[network_id] = self._clock(), query
        return await asyncio.shield(query)


async def _find(network_id: int | None) -> str:
    try:
        if network_id is None:
            return await db_call(find_hub_breaker)()
        return await db_call(find_breaker)(network_id)
    except (DatabaseError, InterfaceError):
        return UNKNOWN


def _make(breaker: str) -> EnvelopeAnswer:
    is_degraded = breaker in (OPEN, UNKNOWN)
    status = HTTPStatus.SERVICE_UNAVAILABLE if is_degraded else HTTPStatus.OK
    report = {
        "status": "degraded" if is_degraded else "ok",
        "protocol": PROTOCOL,
        "network_version": NETWORK_VERSION,
        "time": iso(approximate_now()),
        "breaker": breaker,
    }
    return EnvelopeAnswer(status, msgspec.json.encode(report), [], "")


# Records a request that asked an agent of the hub, with its response.
RecordAsk = Callable[[HttpRequest, Arrival, EnvelopeAnswer], None]


class AgntEndpoint:
    """Answers `PATHS`. `is_https`: whether the hub's public address is; then plain HTTP is refused."""

    def __init__(
        self,
        runner: EnvelopeRunner,
        reports: StatusReports,
        record: RecordAsk | None = None,
        *,
        is_https: bool,
        clock: Clock = time.monotonic,
    ) -> None:
        self.runner = runner
        self._reports = reports
        self._record = record
        self._is_https = is_https
        self._clock = clock

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        began = self._clock()
        trace = request.enter_trace()
        methods = ("GET", "HEAD") if request.path in (STATUS_PATH, VENUES_PATH) else ("POST",)
        arrival = self._arrive(request, began)
        try:
            check_transport(request, methods, is_https=self._is_https)
            if request.path == STATUS_PATH:
                answer = await self._report_status(request, arrival)
            elif request.path == VENUES_PATH:
                answer = await self._list_venues(request, arrival)
            else:
                answer = await self._take_envelope(request, arrival)
        except EnvelopeRefused as refused:
            answer = make_refusal(arrival, refused, elapsed_s=self._clock() - began)
        except ClientLeft:
            return
        except Exception:
            logger.exception("agnt.failed")
            failed = EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "internal error")
            answer = make_refusal(arrival, failed, elapsed_s=self._clock() - began)
        more = [trace]
        if answer.status == METHOD_NOT_ALLOWED:
            more.append((b"allow", ", ".join(methods).encode("ascii")))
        if self._record is not None and arrival.asked is not None:
            self._record(request, arrival, answer)
        body = b"" if request.method == "HEAD" else answer.body
        await respond(send, answer.status, body, [*answer.headers, *more])

    async def _take_envelope(self, request: HttpRequest, arrival: Arrival) -> EnvelopeAnswer:
        """Read an envelope, keep its first flaw, and run it: the key is looked at before most of them."""
        try:
            body = await _read_bounded(request)
            fields, arrival.text = read_body(body, request.headers.get("content-type", ""))
        except EnvelopeRefused as refused:
            arrival.envelope, arrival.is_body_refused = refused, True
            return await self._run_refused(arrival, refused)
        arrival.body = body
        arrival.body_signature = request.headers.get(SIGNATURE_HEADER.lower(), "")
        arrival.read_fields(fields)
        return await self.runner.run(arrival)

    async def _run_refused(self, arrival: Arrival, refused: EnvelopeRefused) -> EnvelopeAnswer:
        """Answer a body that the hub cannot read; with a key, the request counts as a call."""
        if arrival.digest:
            return await self.runner.run(arrival)
        return make_refusal(arrival, refused, elapsed_s=self._clock() - arrival.began)

    async def _report_status(self, request: HttpRequest, arrival: Arrival) -> EnvelopeAnswer:
        """The report on the network of the key, or without a key on the hub. The report counts as no call."""
        if request.headers.get("authorization"):
            return await self._reports.report_network(arrival.digest)
        return await self._reports.report_hub()

    async def _list_venues(self, request: HttpRequest, arrival: Arrival) -> EnvelopeAnswer:
        """The list by REST: a call of the key, like the intent, without sender and response envelope."""
        try:
            payload = _read_query(request)
            arrival.envelope = Envelope(sender="", intent="venue.list", payload=payload, timestamp="")
        except EnvelopeRefused as refused:
            arrival.envelope = refused
        return await self.runner.run(arrival)

    def _arrive(self, request: HttpRequest, began: float) -> Arrival:
        token = find_token(request.headers)
        arrival = Arrival.begin(digest(token) if token else "", began, request.headers.get("user-agent", ""))
        arrival.is_envelope = request.path != VENUES_PATH
        return arrival


def check_transport(request: HttpRequest, methods: Sequence[str], *, is_https: bool) -> None:
    """Refuse what came in plain text to a hub with TLS, another HTTP method, keys in the address, and two keys.

    Raises:
        EnvelopeRefused: `tls_required`; `invalid_envelope` on 405 and 400.
    """
    check_scheme(request.scope.get("scheme", "http"), is_https=is_https)
    if request.method not in methods:
        raise EnvelopeRefused(
            ErrorCode.INVALID_ENVELOPE, f"want {' or '.join(methods)}", status=METHOD_NOT_ALLOWED
        )
    check_query(str(request.scope.get("query_string", b""), "latin-1"))
    if request.contradicted:
        text = f"the header {request.contradicted} came with two values"
        raise EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, text, status=MALFORMED)


def check_scheme(scheme: str, *, is_https: bool) -> None:
    """Refuse what came in plain text to a hub with TLS.

    Raises:
        EnvelopeRefused: `tls_required`.
    """
    if is_https and scheme in UNENCRYPTED:
        raise EnvelopeRefused(ErrorCode.TLS_REQUIRED, "send it over HTTPS, and give this key up: it was readable")


def check_query(query: str) -> None:
    """Refuse a key in the address.

    Raises:
        EnvelopeRefused: `invalid_envelope` on 400.
    """
    if _has_key(query):
        text = "a key belongs in the header Authorization, never in the address"
        raise EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, text, status=MALFORMED)


def find_token(headers: Mapping[str, str]) -> str:
    """The AGNT key in the header `Authorization`; empty where there is none, or something else."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(KEY_PREFIX) else ""


def _has_key(query: str) -> bool:
    pairs = parse_qsl(query, keep_blank_values=True)
    return any(name.lower() in KEY_NAMES or KEY_PREFIX in value or KEY_PREFIX in name for name, value in pairs)


async def _read_bounded(request: HttpRequest) -> bytes:
    """The body.

    Raises:
        EnvelopeRefused: `payload_too_large`; `invalid_envelope`, it took too long.
        ClientLeft: the client disconnected.
    """
    try:
        request.check_length(MAX_BODY_BYTES)
        return bytes(await request.read_body(MAX_BODY_BYTES, BODY_WITHIN_S))
    except RequestRefused as refused:
        if refused.status == REQUEST_TIMEOUT:
            raise EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, str(refused), status=REQUEST_TIMEOUT) from None
        text = f"an envelope holds at most {MAX_BODY_BYTES} bytes"
        raise EnvelopeRefused(ErrorCode.PAYLOAD_TOO_LARGE, text) from None


def _read_query(request: HttpRequest) -> Json:
    """The query parameters of a list.

    Raises:
        EnvelopeRefused: `invalid_envelope`, one is unknown, came twice, or is no text or number.
    """
    query = str(request.scope.get("query_string", b""), "latin-1")
    given = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if unknown := sorted(given.difference(LIST_PARAMETERS)):
        raise make_field_error(f"unknown parameters: {', '.join(unknown)}"[:MAX_UNKNOWN_CHARS], unknown)
    payload: Json = {}
    for name in LIST_PARAMETERS:
        values = request.query_values(name)
        if len(values) > 1 or any("\0" in value for value in values):
            raise make_field_error(f"{name}: want one value", [name])
        if values:
            payload[name] = values[0]
    if "limit" in payload:
        digits = payload["limit"]
        if not digits.isascii() or not digits.isdigit() or len(digits) > MAX_LIMIT_DIGITS:
            raise make_field_error("limit: want an integer above 0", ["limit"])
        payload["limit"] = int(digits)
    return payload
