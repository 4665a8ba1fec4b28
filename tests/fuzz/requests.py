"""Requests drawn from the description of the hub's API, or made from sound ones, and the verdict on an answer."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote_to_bytes, urlencode

from hypothesis import strategies as st

from lab.frames import Json
from tests.fuzz.live import Broke, Live
from tests.fuzz.values import ODD, Draw, Schemas, draw_bytes, draw_flawed
from tests.malformed.mutations import HEADERS, PATHS, QUERIES, QUERY_VALUES, VERBS
from tests.malformed.raw_http import Connection, Response

WITHIN_S = 60
JSON, FORM, FILES = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
BOUNDARY = "-----fuzz"
NO_HTTP = (400, 405, 431)  # which the server answers by itself, to bytes that are no request or hardly one
ONE_IN_8, ONE_IN_3 = st.integers(0, 7).map(lambda n: n == 0), st.integers(0, 2).map(lambda n: n == 0)
IN_QUERIES = [*QUERY_VALUES, "a%00b", "2147483648", "9223372036854775808", "-9223372036854775809"]
ODD_QUERY_VALUES = st.sampled_from(IN_QUERIES).map(unquote_to_bytes)
PLACES = st.integers(0, 2**16)
HEADER_FLAWS = st.sampled_from([(name, value) for name, value, _ in HEADERS])


@dataclass(frozen=True)
class HttpCase:
    """One request. `may_answer`: statuses over 499 that the description names."""

    verb: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    may_answer: frozenset[int] = frozenset()

    def request(self) -> bytes:
        """The bytes of it."""
        named = {name.lower() for name, _ in self.headers}
        length = [] if "content-length" in named or not self.body else [("Content-Length", str(len(self.body)))]
        lines = [f"{self.verb} {self.target} HTTP/1.1", *(f"{k}: {v}" for k, v in [*self.headers, *length])]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + self.body


@dataclass(frozen=True)
class HttpWire:
    """The requests on one wire. `cases` draws them; `sound` is answered with 200 whatever was sent before."""

    name: str
    cases: st.SearchStrategy[HttpCase]
    sound: Callable[[], HttpCase]


@dataclass(frozen=True)
class Operation:
    """A call of the description, with the headers that sign it in, and path values that exist."""

    path: str
    verb: str
    described: Json
    headers: tuple[tuple[str, str], ...]
    own: Mapping[str, Any]

    @property
    def content_type(self) -> str:
        """The media type of its body; empty when it has none."""
        return next(iter(self.described.get("requestBody", {}).get("content", {})), "")

    @property
    def may_answer(self) -> frozenset[int]:
        return frozenset(int(one) for one in self.described["responses"] if one.startswith("5") and one != "500")


@st.composite
def described_cases(draw: Draw, schemas: Schemas, operations: Sequence[Operation]) -> HttpCase:
    """A request of one of these operations, with at most a few flaws."""
    one = draw(st.sampled_from(operations))
    target, query, headers = one.path, dict[str, Any](), dict(one.headers)
    for parameter in one.described.get("parameters", ()):
        name, where, schema = parameter["name"], parameter["in"], parameter.get("schema", {})
        if where == "path":
            value = one.own.get(name) if name in one.own and not draw(ONE_IN_8) else draw_path_value(draw)
            target = target.replace(f"{{{name}}}", quote(str(value), safe="@", errors="replace"))
        elif where in ("query", "header") and (parameter.get("required") or draw(st.booleans())):
            value = draw(ODD_QUERY_VALUES) if draw(ONE_IN_8) else schemas.draw(draw, schema, name)
            if where == "query":
                query[name] = value
            else:
                headers[name] = quote(value) if isinstance(value, bytes) else str(value)
    if query:
        target += "?" + urlencode(query, doseq=True, errors="replace")
    body = b""
    if content := one.described.get("requestBody", {}).get("content"):
        schema = next(iter(content.values())).get("schema", {})
        document = draw_flawed(draw, schemas.draw(draw, schema))
        headers.setdefault("Content-Type", one.content_type)
        body, headers["Content-Type"] = encoded(draw, document, headers["Content-Type"])
    return draw_head_flaws(draw, HttpCase(one.verb, target, tuple(headers.items()), body, one.may_answer))


@st.composite
def changed_cases(
    draw: Draw, sound: Sequence[tuple[HttpCase, Any]], more: Mapping[str, Sequence[str]] | None = None
) -> HttpCase:
    """A sound request with its JSON changed. `more`: values of headers that it may have besides."""
    case, document = draw(st.sampled_from(sound))
    body = b"" if document is None else draw_bytes(draw, draw_flawed(draw, json.loads(json.dumps(document))))
    headers = [*case.headers]
    for name, values in (more or {}).items():
        if value := draw(st.sampled_from(["", *values])):
            headers.append((name, value))
    return draw_head_flaws(draw, HttpCase(case.verb, case.target, tuple(headers), body, case.may_answer))


def draw_path_value(draw: Draw) -> str:
    """A value in a path that leads to nothing, or hardly."""
    value = draw(ODD)
    return str(value).replace("/", "%")[:3000] or "0"


def draw_head_flaws(draw: Draw, case: HttpCase) -> HttpCase:
    """Some requests get another address, method, query or header."""
    verb, target, headers = case.verb, case.target, case.headers
    if draw(ONE_IN_8):
        path, _, query = target.partition("?")
        path = draw(st.sampled_from(PATHS))(path, draw(PLACES) % (len(path) + 1))
        target = f"{path}?{query}" if query else path
    if draw(ONE_IN_8):
        target += ("&" if "?" in target else "?") + draw(st.sampled_from(QUERIES))
    if draw(ONE_IN_8):
        verb = draw(st.sampled_from(VERBS))
    if draw(ONE_IN_8):
        name, value = draw(HEADER_FLAWS)
        kept = [one for one in headers if one[0].lower() != name.lower() or draw(st.booleans())]
        headers = (*kept, *([(name, value)] if value is not None else []))
    return HttpCase(verb, target, headers, case.body, case.may_answer)


def encoded(draw: Draw, document: Any, content_type: str) -> tuple[bytes, str]:
    """A body of that media type, and the media type with its parameters."""
    if content_type == FORM:
        fields = document if isinstance(document, dict) else {"x": document}
        return urlencode(fields, doseq=True, errors="replace").encode(), FORM
    if content_type == FILES:
        return files_of(draw, document), f"{FILES}; boundary={BOUNDARY}"
    return draw_bytes(draw, document), content_type


def files_of(draw: Draw, document: Any) -> bytes:
    """A form with a file for each member of a document."""
    fields = document if isinstance(document, dict) else {"file": document}
    lines = list[bytes]()
    for name, value in fields.items():
        file_name = draw(st.sampled_from(['; filename="a.csv"', '; filename="../\u202e.txt"', "", "; filename="]))
        disposition = f'Content-Disposition: form-data; name="{name}"{file_name}'
        content = value if isinstance(value, str) else json.dumps(value, default=str)
        lines += [f"--{BOUNDARY}".encode(), disposition.encode(errors="replace"), b""]
        lines.append(content.encode(errors="replace"))
    return b"\r\n".join([*lines, f"--{BOUNDARY}{draw(st.sampled_from(['--', '', '-']))}".encode(), b""])


@dataclass
class Requester:
    """Sends requests over one connection, and judges the answers."""

    live: Live
    statuses: dict[int, int] = field(default_factory=dict)
    _connection: Connection | None = None

    def attack(self, case: HttpCase) -> None:
        """Send a case; raises Broke when its answer is not one that the hub may give."""
        response = self.ask(case)
        self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
        check_response(case, response)

    def ask(self, case: HttpCase) -> Response:
        """The answer; one of status 0 when the hub closed the connection instead."""
        host = ("Host", self.live.hub.url.removeprefix("http://"))
        named = {name.lower() for name, _ in case.headers}
        sent = case if "host" in named else HttpCase(case.verb, case.target, (host, *case.headers), case.body)
        while True:
            is_new = self._connection is None
            self._connection = self._connection or Connection(self.live.hub.url)
            try:
                return self.live.run(self._connection.ask(sent.request(), within_s=WITHIN_S))
            except (asyncio.IncompleteReadError, ConnectionError):
                self._connection = None
                if is_new:  # else the hub may have closed it because it was idle
                    return Response(0, {}, b"")
            except TimeoutError:
                raise Broke(f"no answer within {WITHIN_S} s") from None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self.live.run(self._connection.__aexit__())
            self._connection = None

    def check_sound(self, wire: HttpWire) -> None:
        """Raise unless the wire's sound request is answered as if nothing had been sent before."""
        response = self.ask(wire.sound())
        if response.status != 200:
            raise Broke(f"a sound request got {response.status} {response.body[:300]!r}")


def check_response(case: HttpCase, response: Response) -> None:
    """Raise Broke when a hub may not answer so."""
    status, kind = response.status, response.headers.get("content-type", "").partition(";")[0]
    if status == 0:
        raise Broke("the hub closed the connection without an answer")
    if status >= 500 and status not in case.may_answer:
        raise Broke(f"{status} {response.body[:600]!r}")
    if kind in ("application/json", "application/scim+json") and response.body:
        try:
            json.loads(response.body)
        except ValueError:
            raise Broke(f"{status}, not JSON: {response.body[:600]!r}") from None
