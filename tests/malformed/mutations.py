"""Sound requests with something wrong in them: in their JSON, bytes, headers, verb, address or query.

Everything is drawn from one seeded generator: the same cases each time, but for the ids the hub makes.
"""

import copy
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.malformed.valid_requests import ValidRequest, all_valid, mark, shown

Headers = list[tuple[str, str]]
Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request. `is_wrong`: it must be refused; `may_hang_up`: it is no HTTP at all, or hardly."""

    number: int
    name: str
    sound: ValidRequest
    verb: str
    target: str
    headers: Headers
    body: bytes
    is_wrong: bool = False
    may_hang_up: bool = False
    is_below_agent: bool = True
    raw: bytes = b""

    @property
    def asks(self) -> bool:
        """True if the agent gets the question when the case is served; the hub answers empty questions itself."""
        return self.sound.asks and mark(self.number).encode() in self.body

    def request(self) -> bytes:
        """The bytes of it."""
        if self.raw:
            return self.raw
        named = {name.lower() for name, _ in self.headers}
        length = [] if "content-length" in named or not self.body else [("Content-Length", str(len(self.body)))]
        lines = [f"{self.verb} {self.target} HTTP/1.1", *(f"{k}: {v}" for k, v in [*self.headers, *length])]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + self.body


class Raw(str):
    """JSON that `json` would not write."""

    __slots__ = ()


def nested(levels: int) -> Any:
    """Arrays in each other."""
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


NUMBERS = [0, -1, 1, 1.5, 2**31, 2**63, -(2**63) - 1, 10**40, 1e308, Raw("1e400"), Raw("-0"), Raw("9" * 400)]
TEXTS = ["", " ", "x", "\t\n", "a" * 300, "a" * 50_000, "../../etc/passwd", "' OR 1=1 --", "%00", "\u202e", "🦀"]
TEXTS += ["TASK_STATE_NOPE", "ROLE_AGENT", "agent", "not base64!", "1e3", "-5", "true", "null", "{}", "\x7f"]
VALUES = [None, True, False, *NUMBERS, *TEXTS, [], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, nested(20)]
BROKEN = ["\0", "a\0b", "\ud800", "\udc00x", nested(70), nested(400), Raw("NaN"), Raw("Infinity")]
BROKEN += [{"\0": 1}, Raw("9" * 5000), Raw("01"), Raw("'x'"), Raw("undefined"), Raw('{"a":1,"a":2}'), Raw("[1,]")]
EXTRA = [("taskId", "task-x"), ("taskId", 5), ("kind", "text"), ("kind", 7), ("__proto__", {}), ("task_id", [])]
EXTRA += [("contextId", {}), ("raw", "!"), ("raw", "YQ=="), ("url", 5), ("data", None), ("file", {"bytes": "!"})]
EXTRA += [("jsonrpc", "1.0"), ("id", {}), ("\u0000", 1), ("x" * 5000, 1), ("metadata", "x"), ("tenant", 5)]
EXTRA += [("pushNotificationConfig", {"url": 5}), ("blocking", "no"), ("pageSize", "ten"), ("constructor", "x")]
PARTS = [{}, {"text": None}, {"text": 5}, {"text": "a", "data": 1}, {"raw": "not base64!"}, {"raw": "YQ"}]
PARTS += [
    {"url": "https://x.example/f"},
    {"kind": "file", "file": {"bytes": "YQ=="}},
    {"kind": "video"},
    5,
    "x",
    None,
]
METHODS = ["", " ", "sendMessage", "SENDMESSAGE", "SendMessage ", "message/Send", "message/", "/", "rpc.discover"]
METHODS += ["tasks/list", "__class__", "methods", "x" * 5000, "SendMessage\n", "tasks/pushNotificationConfig/nope"]
MARK = ("parts", 2)  # the part by which a question is known again is left alone
CHANGES = {"value": 8, "broken": 3, "gone": 2, "extra": 2, "part": 2, "method": 1, "snake": 1}  # and how often


class Mutations:
    """Draws cases. `url`: the hub's; `base`: an agent's address; `task_id`: a finished task of the caller's."""

    def __init__(self, url: str, base: str, token: str, task_id: str, seed: int) -> None:
        self._host, self._base, self._token, self._task_id = urlsplit(url).netloc, base, token, task_id
        self._random = Random(seed)
        self._numbers = iter(range(1, 1_000_000))

    def draw(self, *, each: int) -> Iterator[Case]:
        """Cases of every kind; `each`: how many of the JSON of one method in one binding."""
        for place in range(len(all_valid(0, ""))):
            takes_body = all_valid(0, "")[place].verb == "POST"
            for _ in range(each if takes_body else 0):
                yield self._json(self._new(place))
            for change in BYTES if takes_body else ():
                yield self._bytes(self._new(place), change)
            for _ in range(each // 4):
                yield self._headers(self._new(place))
                yield self._query(self._new(place))
            for _ in range(each // 8):
                yield self._verb(self._new(place))
                yield self._target(self._new(place))
            yield from (self._odd_http(self._new(place), lines) for lines in self._random.sample(ODD_HTTP, 3))

    def _new(self, place: int) -> Case:
        """A sound case."""
        number = next(self._numbers)
        sound = all_valid(number, self._task_id)[place]
        target, body = self._base, b""
        if sound.binding == "HTTP+JSON":
            target += f"/{sound.path}" + ("" if sound.verb == "POST" else f"?{urlencode(sound.params)}")
        if sound.verb == "POST":
            body = written(self._document(sound))
        headers = [("Host", self._host), ("Authorization", f"Bearer {self._token}")]
        headers += [("Content-Type", "application/json")] if body else []
        headers += [("A2A-Version", sound.version)] if sound.version else []
        name = f"{number} {sound.binding} {sound.dialect} {sound.name}"
        return Case(
            number=number, name=name, sound=sound, verb=sound.verb, target=target, headers=headers, body=body
        )

    def _document(self, sound: ValidRequest) -> Any:
        if sound.binding == "HTTP+JSON":
            return copy.deepcopy(sound.params)
        return {"jsonrpc": "2.0", "id": 7, "method": sound.name, "params": copy.deepcopy(sound.params)}

    def _json(self, case: Case) -> Case:
        document, pick = self._document(case.sound), self._random
        path = pick.choice([one for one in paths(document) if one[-2:] != MARK and one[-3:-1] != MARK])
        kind = pick.choices(list(CHANGES), list(CHANGES.values()))[0]
        is_wrong = False
        if kind == "part" and case.sound.asks:
            path, value = (*at_params(case.sound), "message", "parts", 1), pick.choice(PARTS)
            put(document, path, value)
            is_wrong = case.sound.dialect == "1.0" or (case.sound.dialect == "hub" and "url" not in str(value))
        elif kind == "method" and case.sound.binding == "JSON-RPC":
            path, value = ("method",), pick.choice(METHODS)
            put(document, path, value)
            is_wrong = True
        elif kind == "gone":
            value = "gone"
            take(document, path)
            is_wrong = is_strict(case.sound, path, None)
        elif kind == "extra":
            name, value = pick.choice(EXTRA)
            owner = pick.choice([one for one in (document, *within(document)) if isinstance(one, dict)])
            owner.setdefault(name, value)
            path = ("+", name[:20])
        elif kind == "snake" and isinstance(path[-1], str):
            value = "in snake case"
            put(document, (*path[:-1], snake(path[-1])), take(document, path))
        elif kind == "broken":
            value = pick.choice(BROKEN)
            put(document, path, value)
            is_wrong = True
        else:
            kind, value = "value", pick.choice(VALUES)
            put(document, path, value)
            is_wrong = is_strict(case.sound, path, value)
        name = f"{case.name}: {kind} {shown(path)} = {str(value)[:40]!r}"
        return replace(case, name=name, body=written(document), is_wrong=is_wrong)

    def _bytes(self, case: Case, change: str) -> Case:
        body, at = case.body, self._random.randrange(1, max(2, len(case.body)))
        made, is_wrong = BYTES[change](body, at)
        may_be_empty = case.sound.name in ("CancelTask", "SubscribeToTask") and not made.strip()
        headers = [*case.headers, *([("Content-Encoding", "gzip")] if change == "gzip" else [])]
        name = f"{case.name}: {change} at {at}"
        return replace(case, name=name, body=made, headers=headers, is_wrong=is_wrong and not may_be_empty)

    def _headers(self, case: Case) -> Case:
        name, value, is_wrong = self._random.choice(HEADERS)
        if name in ("Content-Type", "Authorization"):
            kept = [(one, held) for one, held in case.headers if one != name]
            is_wrong = is_wrong and (name != "Content-Type" or case.verb == "POST")
            headers = kept if value is None else [*kept, (name, value)]
        elif name == "A2A-Version" and self._random.random() < 0.7:
            headers = [*((one, held) for one, held in case.headers if one != name), (name, value or "")]
        else:
            headers = [*case.headers, *([(name, value or "")] * self._random.choice([1, 1, 2, 20]))]
        said = f"{case.name}: header {name}: {str(value)[:40]!r}"
        return replace(case, name=said, headers=headers, is_wrong=is_wrong)

    def _query(self, case: Case) -> Case:
        pick = self._random
        if case.verb == "GET" and case.sound.params and pick.random() < 0.8:
            name = pick.choice(list(case.sound.params))
            value = pick.choice(QUERY_VALUES)
            told = "&".join(f"{one}={quote(str(held))}" for one, held in case.sound.params.items() if one != name)
            query = f"{told}&{name}={value}" if pick.random() < 0.8 else f"{told}&{name}=1&{name}={value}"
        else:
            query = pick.choice(QUERIES)
        target = f"{case.target.partition('?')[0]}?{query}"
        return replace(case, name=f"{case.name}: query {query[:60]}", target=target, may_hang_up="\xff" in query)

    def _verb(self, case: Case) -> Case:
        sound = ("GET", "HEAD") if case.sound.binding == "JSON-RPC" else ()  # they read the card
        verb = self._random.choice([one for one in VERBS if one not in (case.verb, *sound)])
        is_wrong = verb != "OPTIONS" and (case.sound.binding, case.sound.name, verb) not in ALSO
        return replace(case, name=f"{case.name}: {verb} {case.target}", verb=verb, is_wrong=is_wrong)

    def _target(self, case: Case) -> Case:
        pick = self._random
        path = case.target.partition("?")[0]
        change = pick.choice(PATHS)
        target = change(path, pick.randrange(len(self._base), len(path) + 1))
        name = f"{case.name}: address {target[:100]}"
        return replace(case, name=name, target=target, is_below_agent=False)

    def _odd_http(self, case: Case, odd: tuple[str, str, str]) -> Case:
        version, header, ending = odd
        lines = [f"{case.verb} {case.target} {version}", *(f"{k}: {v}" for k, v in case.headers)]
        lines += [f"Content-Length: {len(case.body)}", "Connection: close", *([header] if header else [])]
        raw = ending.join(lines).encode("latin-1") + (ending * 2).encode() + case.body
        name = f"{case.name}: odd HTTP {version!r} {header[:40]!r} {ending!r}"
        return replace(case, name=name, raw=raw, may_hang_up=True)


def paths(value: Any, before: Path = ()) -> Iterator[Path]:
    """The ways to everything within a document."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in members:
        yield (*before, step)
        yield from paths(one, (*before, step))


def within(value: Any) -> Iterator[Any]:
    """Everything within a document."""
    return (at(value, path) for path in paths(value))


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: Path, new: Any) -> None:
    at(value, path[:-1])[path[-1]] = new


def take(value: Any, path: Path) -> Any:
    return at(value, path[:-1]).pop(path[-1])


def at_params(sound: ValidRequest) -> Path:
    """The path of the params in the body."""
    return ("params",) if sound.binding == "JSON-RPC" else ()


def is_strict(sound: ValidRequest, path: Path, value: Any) -> bool:
    """True if that value at that path must be refused."""
    if sound.binding == "JSON-RPC":
        if path[0] != "params":
            return path[0] in ("jsonrpc", "method")
        path = path[1:]
        if not path:
            return "{" not in str(value)[:1] and bool(sound.params) and sound.name != "ListTasks"
    where = shown(path)
    if where == "message.messageId":
        return not isinstance(value, str) or not 0 < len(value) <= 128
    if where == "message.role":
        return value is True or value != 1
    if where == "message.parts" and sound.dialect == "0.3":  # of which what is of no use is left out
        return not isinstance(value, list)
    may_be_any = where == "url" or (where == "id" and "Push" in sound.name)
    return where in sound.strict and not (may_be_any and isinstance(value, str))


def snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def written(document: Any) -> bytes:
    """A document as JSON, raw pieces and halves of characters included."""
    raws = [one for one in within([document]) if isinstance(one, Raw)]
    text = json.dumps(document)
    for one in raws:
        text = text.replace(json.dumps(one), str(one))
    return text.encode()


BYTES = {
    "cut off": lambda body, i: (body[: i if i < len(body) else 1], True),
    "a byte that is no UTF-8": lambda body, i: (b'{"a":"\xff"' + body[1:], True),
    "NUL behind": lambda body, i: (body + b"\0", True),
    "twice": lambda body, i: (body + body, True),
    "a batch": lambda body, i: (b"[" + body + b"]", True),
    "an empty batch": lambda body, i: (b"[]", True),
    "a string": lambda body, i: (json.dumps(body.decode()).encode(), True),
    "UTF-16": lambda body, i: (body.decode().encode("utf-16"), True),
    "a byte order mark": lambda body, i: (b"\xef\xbb\xbf" + body, False),
    "gzip": lambda body, i: (gzip.compress(body, mtime=0), True),
    "empty": lambda body, i: (b"", True),
    "spaces": lambda body, i: (b" \n\t ", True),
    "a comment": lambda body, i: (b"/* x */" + body, True),
    "a form": lambda body, i: (b"jsonrpc=2.0&method=SendMessage&id=1", True),
    "many brackets": lambda body, i: (b"[" * 20_000, True),
    "many objects": lambda body, i: (b'{"a":[' + b"{}," * 10_001 + b"{}]}", True),
    "noise": lambda body, i: (Random(i).randbytes(200), True),
    "null": lambda body, i: (b"null", True),
    "a number": lambda body, i: (b"5", True),
    "XML": lambda body, i: (b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', True),
}
HEADERS: list[tuple[str, str | None, bool]] = [
    *(
        ("A2A-Version", one, True)
        for one in ("99.0", "abc", "0.5", "1.7", "2", "-1.0", "1.0, 0.3", "\xff", "1" * 500)
    ),
    *(("A2A-Version", one, False) for one in ("", "0.3", "0.3.1", "1", "1.0", "1.0.1", " 1.0 ")),
    *(
        ("Content-Type", one, True)
        for one in ("text/plain", "application/xml", "multipart/form-data", "\xff", "x")
    ),
    *(("Content-Type", one, False) for one in (None, "application/json; charset=utf-8", "application/a2a+json")),
    *(
        ("Authorization", one, True)
        for one in (None, "", "Bearer", "Bearer x", "Basic eDp5", "Bearer \xff", "x" * 9000)
    ),
    *(
        ("Last-Event-ID", one, False)
        for one in ("", "x", "x.1", "task-0.1", "." * 500, "a.-1", "a.99999999999", "\xff")
    ),
    *(("A2A-Extensions", one, False) for one in ("", "x", "," * 500, "https://x.example/e, \xff", "x" * 9000)),
    *(
        ("traceparent", one, False)
        for one in ("x", "00-" + "0" * 32 + "-" + "0" * 16 + "-00", "00-\xff", "-" * 900)
    ),
    *(("tracestate", one, False) for one in ("x", "=" * 900, "\xff")),
    *(("Accept", one, False) for one in ("image/png", "x", "*/*;q=2", "\xff")),
    *(("Cookie", one, False) for one in ("cw_session=\xff", "cw_session=" + "x" * 5000, ";;;==", "sessionid=x")),
    *(("Origin", one, False) for one in ("null", "https://elsewhere.example", "\xff")),
    *(("Host", one, False) for one in ("elsewhere.example", "\xff", "a" * 300, "127.0.0.1:99999")),
    *(("Range", one, False) for one in ("bytes=0-1", "bytes=-" + "9" * 50)),
    *(("X-Forwarded-For", one, False) for one in ("\xff", "1.2.3.4," * 500)),
    *(("Forwarded", one, False) for one in ("for=_x", "\xff")),
    *(("X-HTTP-Method-Override", one, False) for one in ("DELETE", "\xff")),
    *(("Upgrade", one, False) for one in ("h2c", "x")),
    ("Expect", "100-continue", False),
    ("If-None-Match", "*", False),
    ("Accept-Encoding", "gzip, br, \xff", False),
]
QUERY_VALUES = [
    "",
    "x",
    "-1",
    "0",
    "101",
    "1.5",
    "9" * 400,
    "true",
    "TRUE",
    "null",
    "%00",
    "%ff",
    "%ed%a0%80",
    "%zz",
]
QUERY_VALUES += [
    "%2F..%2F",
    "a" * 5000,
    "[]",
    "{}",
    "%0d%0aX:1",
    "TASK_STATE_NOPE",
    "0",
    "2",
    "WORKING",
    "+",
    "NaN",
]
QUERY_VALUES += ["2026-01-02", "2026-13-45T99:99:99Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"]
QUERIES = [
    "",
    "&&&",
    "=",
    "==&=",
    "A2A-Version=9",
    "A2A-Version=1.0&A2A-Version=0.3",
    "%",
    "%%%",
    "a=%ff",
    "?" * 50,
]
QUERIES += [
    "x[]=1&x[a]=2",
    "a" * 9000,
    "&".join("a=1" for _ in range(500)),
    "pageSize[]=1",
    "id=x&taskId=y",
    "\xff=\xfe",
]
ALSO = {
    ("HTTP+JSON", "SubscribeToTask", "GET"),
    ("HTTP+JSON", "CreateTaskPushNotificationConfig", "GET"),
    ("HTTP+JSON", "ListTaskPushNotificationConfigs", "POST"),
    ("HTTP+JSON", "GetTaskPushNotificationConfig", "DELETE"),
    ("HTTP+JSON", "DeleteTaskPushNotificationConfig", "GET"),
}
VERBS = ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "POST"]
PATHS = [
    lambda path, i: path[:i] + "%2F" + path[i:],
    lambda path, i: path[:i] + "/../" + path[i:],
    lambda path, i: path[:i] + "//" + path[i:],
    lambda path, i: path[:i] + "%00" + path[i:],
    lambda path, i: path[:i] + "%ff%fe" + path[i:],
    lambda path, i: path[:i] + ":" + path[i:],
    lambda path, i: path[:i] + "%3A" + path[i:],
    lambda path, i: path[:i] + "%0d%0aX-Y:1" + path[i:],
    lambda path, i: path[:i] + "%" + path[i:],
    lambda path, i: path[:i] + "%F0%9F%A6%80" + path[i:],
    lambda path, i: path[:i] + ";a=b" + path[i:],
    lambda path, i: path + "/" + "x" * 5000,
    lambda path, i: path + "/tasks/.%2e/.%2e/",
    lambda path, i: path + "/tasks/" + "a/" * 200,
    lambda path, i: path + "/message:send:stream",
    lambda path, i: path + "/tenant/message:send",
    lambda path, i: path.upper(),
    lambda path, i: "http://elsewhere.example" + path,
    lambda path, i: path.replace("/agents/", "/agents/@@"),
    lambda path, i: path.replace("/v1/", "/v2/"),
    lambda path, i: path.replace("/agents/", "/agents/..%2fagents/"),
]
ODD_HTTP = [
    ("HTTP/1.0", "", "\r\n"),
    ("HTTP/2.0", "", "\r\n"),
    ("HTTP/9.9", "", "\r\n"),
    ("", "", "\r\n"),
    ("HTTP/1.1 ", "", "\r\n"),
    ("HTTP/1.1", "", "\n"),
    ("HTTP/1.1", "X: a\0b", "\r\n"),
    ("HTTP/1.1", "X: a\rb", "\r\n"),
    ("HTTP/1.1", " folded", "\r\n"),
    ("HTTP/1.1", "no colon", "\r\n"),
    ("HTTP/1.1", ": no name", "\r\n"),
    ("HTTP/1.1", "X : spaced", "\r\n"),
    ("HTTP/1.1", "Content-Length: 5", "\r\n"),
    ("HTTP/1.1", "Content-Length: -1", "\r\n"),
    ("HTTP/1.1", "Transfer-Encoding: chunked", "\r\n"),
    ("HTTP/1.1", "Transfer-Encoding: gzip", "\r\n"),
    ("HTTP/1.1", "X: " + "y" * 70_000, "\r\n"),
    ("HTTP/1.1", "\r\n".join(f"X-{i}: {i}" for i in range(300)), "\r\n"),
]
