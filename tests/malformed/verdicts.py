"""Verdicts on answers: if an answer is sound, and if the request was served."""

import json
import math
from typing import Any

from lab.callers import Json
from tests.malformed.mutations import Case
from tests.malformed.raw_http import Response

MAX_DEPTH = 64
NO_BODY = (204, 304)
ERROR_KEYS = {"code", "message", "data"}


def is_served(case: Case, response: Response) -> bool:
    """True if a request was served, after its answer was found sound. A refused ask is an answer, too.

    Raises:
        AssertionError: the answer is not sound.
    """
    assert response.status < 500, response
    kind = response.headers.get("content-type", "").partition(";")[0]
    if case.may_hang_up and response.status == 400 and kind == "text/plain":
        return False  # the server's own words on what is no HTTP
    if response.status == 431:
        return False  # so are these: the head was over its bound
    if case.verb in ("OPTIONS", "HEAD") or response.status in NO_BODY:
        assert not response.body
        return False
    if not case.is_below_agent and kind == "text/html":
        assert response.status == 404, response
        return False
    assert kind in ("application/json", "text/event-stream"), response
    assert kind == "application/json" or response.status == 200, response
    frames = _frames(response) if kind == "text/event-stream" else [json.loads(response.body)]
    assert frames, response
    served = [_is_good(case, response, frame, kind) for frame in frames]
    assert len(set(served)) == 1, frames
    return served[0]


def _is_good(case: Case, response: Response, frame: Json, kind: str) -> bool:
    assert isinstance(frame, dict), frame
    if not case.is_below_agent and isinstance(frame.get("error"), str):  # the REST shape, beside every agent
        assert frame.keys() == {"error", "message"}, frame
        assert response.status in (404, 405), response
        return False
    if case.sound.binding == "HTTP+JSON" and "jsonrpc" not in frame:
        return _of_http(response, frame)
    if not case.is_below_agent and "jsonrpc" not in frame:  # one binding's address may become the other's
        return _of_http(response, frame)
    if kind == "text/event-stream" and "task" in frame:  # the hub's own dialect has no envelopes in streams
        assert frame.keys() == {"task"}, frame
        return True
    return _of_rpc(case, response, frame)


def _of_rpc(case: Case, response: Response, frame: Json) -> bool:
    assert frame.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}), frame
    assert frame["jsonrpc"] == "2.0"
    if response.status == 200 and not case.raw:
        expected = id_in(case.body)
        assert (frame["id"], type(frame["id"])) == (expected, type(expected)), frame
    if "result" in frame:
        assert response.status == 200, response
        return True
    error = frame["error"]
    assert error.keys() <= ERROR_KEYS, error
    assert type(error["code"]) is int
    assert -32800 < error["code"] <= -32000
    assert error["code"] != -32603, error
    assert error["message"]
    assert isinstance(error["message"], str)
    if "data" in error:
        _check_details(error["data"])
    return False


def _of_http(response: Response, frame: Json) -> bool:
    if response.status == 200:
        assert "error" not in frame, frame
        return True
    assert frame.keys() == {"error"}, frame
    error = frame["error"]
    assert error.keys() == {"code", "status", "message", "details"}, error
    assert error["code"] == response.status, error
    assert error["message"]
    _check_details(error["details"])
    return False


def _check_details(details: Any) -> None:
    assert isinstance(details, list), details
    assert details[0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo", details
    assert details[0]["reason"].isupper(), details
    assert all(isinstance(value, str) for value in details[0]["metadata"].values())


def _frames(response: Response) -> list[Any]:
    lines = response.body.decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


def id_in(body: bytes) -> Any:
    """The id that an answer to this body must carry: null where it has no sound one."""
    try:
        value = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_pairs, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or _depth(value) > MAX_DEPTH:
        return None
    found = value.get("id")
    if isinstance(found, str):
        return found if _is_text(found) else None
    return found if type(found) is int and -(2**63) <= found < 2**63 else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("twins")
    return dict(pairs)


def _finite(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(text)
    return value


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _depth(value: Any) -> int:
    layer, depth = [value], 0
    while layer := [one for one in layer if isinstance(one, dict | list)]:
        layer = [one for outer in layer for one in (outer.values() if isinstance(outer, dict) else outer)]
        depth += 1
    return depth


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
