"""The fields that public clients read without a check, as the contract lists them: a wrong type is a crash."""

import re
from collections.abc import Callable
from typing import Any

Shape = Any


def of_type(kind: type) -> Shape:
    """A value of that type; of no subclass, since `True` is no number."""
    return lambda value: type(value) is kind


def matching(pattern: str) -> Shape:
    """A string of that form."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def one_of(*values: str) -> Shape:
    return lambda value: value in values


class Maybe:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape


text, number, flag, some_object = of_type(str), of_type(int), of_type(bool), of_type(dict)
iso = matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
uuid = matching(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
ROLE = one_of("owner", "viewer", "prompter", "approver")
SLUG = matching("@[a-z0-9-]+")
HANDLE = matching("[^@/]+/[^/]+")

USER = {"id": number, "githubLogin": text, "avatarUrl": Maybe(text), "isAdmin": flag, "createdAt": iso}
TOKEN = {
    "id": number,
    "kind": one_of("channel", "app"),
    "name": text,
    "prefix": matching("(ck_live_|cw_app_).+"),
    "appName": Maybe(text),
    "createdAt": iso,
    "lastUsedAt": Maybe(iso),
    "revokedAt": Maybe(iso),
    "machineId": Maybe(text),
    "userAgent": Maybe(text),
}
MINTED = TOKEN | {"token": matching("ck_live_.+")}
AUTH_SESSION = {
    "id": matching("[0-9a-f]{64}"),
    "source": one_of("web", "cli"),
    "userAgent": Maybe(text),
    "machineId": Maybe(text),
    "createdAt": iso,
    "lastUsedAt": iso,
    "expiresAt": iso,
    "revokedAt": Maybe(iso),
    "isCurrent": flag,
}
SESSION = {
    "id": uuid,
    "routingName": Maybe(SLUG),
    "startedByLogin": text,
    "role": ROLE,
    "host": Maybe(text),
    "cwd": Maybe(text),
    "channelVersion": Maybe(text),
    "startedAt": iso,
    "lastSeenAt": iso,
    "archivedAt": Maybe(iso),
    "connected": flag,
    "agentHandle": Maybe(HANDLE),
}
EVENT = {"id": number, "sessionId": uuid, "kind": one_of("chat", "tail"), "type": text}
EVENT |= {"payload": some_object, "ts": iso}
FILE = {
    "id": number,
    "sessionId": uuid,
    "uploaderLogin": text,
    "filename": text,
    "mime": text,
    "size": number,
    "sha256": matching("[0-9a-f]{64}"),
    "scope": one_of("attachment", "reply", "corpus"),
    "expose": flag,
    "uploadedAt": iso,
    "expiresAt": iso,
    "deletedAt": Maybe(iso),
}
AGENT = {
    "id": number,
    "handle": HANDLE,
    "ownerLogin": text,
    "sessionId": uuid,
    "routingName": Maybe(SLUG),
    "name": text,
    "tagline": text,
    "description": text,
    "status": one_of("draft", "published"),
    "online": flag,
    "concurrencyCap": number,
    "dailyBudgetQueries": number,
    "waitS": Maybe(number),
    "agentStyle": one_of("hybrid", "task-generating"),
    "queriesToday": number,
    "queriesAllTime": number,
    "lastQueryAt": Maybe(iso),
    "publishedAt": Maybe(iso),
    "createdAt": iso,
    "isolated": flag,
    "claudeMd": Maybe(text),
    "personalizationPrompt": Maybe(text),
    "liveView": flag,
    "publicAsk": flag,
    "liveViewEnabledAt": Maybe(number),
    "suggestedPrompts": [text],
}
INBOUND = {
    "agent": AGENT,
    "window": {"days": number, "since": iso},
    "summary": {
        "total": number,
        "ok": number,
        "denied": number,
        "avgLatencyMs": Maybe(number),
        "distinctAskers": number,
    },
    "publicThreadStats": {"total": number, "today": number, "active": number},
    "topAskers": [{"login": text, "count": number, "lastAt": iso}],
    "recent": [
        {
            "ts": iso,
            "askerLogin": text,
            "ok": flag,
            "latencyMs": Maybe(number),
            "question": text,
            "routeId": Maybe(text),
            "deniedReason": Maybe(text),
            "traceId": Maybe(text),
        }
    ],
}
WEBHOOK = {
    "id": number,
    "url": text,
    "events": [text],
    "filters": some_object,
    "status": one_of("active", "unhealthy"),
    "createdAt": iso,
    "lastDeliveryAt": Maybe(iso),
}
PEER = {"routingName": SLUG, "ownerLogin": text, "mine": flag, "sessionId": uuid}
PEER |= {"cwd": Maybe(text), "online": flag}
ADMIN_TOKEN = {
    "id": number,
    "kind": one_of("channel", "app"),
    "name": text,
    "prefix": text,
    "userId": number,
    "userLogin": text,
    "createdAt": iso,
    "lastUsedAt": Maybe(iso),
    "revokedAt": Maybe(iso),
    "active": flag,
    "appName": Maybe(text),
    "machineId": Maybe(text),
}


def page(shape: Shape) -> Shape:
    """A window on a transcript."""
    return {"items": [shape], "firstId": Maybe(number), "lastId": Maybe(number), "hasMore": flag}


def items(shape: Shape) -> Shape:
    """A list: the array is always there."""
    return {"items": [shape]}


def check(value: Any, shape: Shape, at: str = "answer") -> Any:
    """Fail with the place where a value is not of a shape; the value. Further members are fine."""
    if isinstance(shape, Maybe):
        if value is not None:
            check(value, shape.shape, at)
    elif isinstance(shape, dict):
        assert isinstance(value, dict), f"{at}: {value!r} is no object"
        for name, inner in shape.items():
            assert name in value, f"{at}: no {name} in {sorted(value)}"
            check(value[name], inner, f"{at}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), f"{at}: {value!r} is no array"
        for index, one in enumerate(value):
            check(one, shape[0], f"{at}[{index}]")
    else:
        fits: Callable[[Any], bool] = shape
        assert fits(value), f"{at}: {value!r} is not of its form"
    return value
