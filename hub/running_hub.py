"""Asks a hub that runs on this machine whether it serves."""

import json
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from gateway.health import STATUS_PATH

WITHIN_S = 3.0
MAX_ANSWER_BYTES = 4_096
_FROM_HERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  where a hub that listens everywhere is asked


@dataclass(frozen=True, slots=True)
class RunningHub:
    """A process of the hub that answers. `hindrance`: why it does not serve now; empty: it serves."""

    url: str
    hindrance: str
    has_gateway: bool


def ask_hub(url: str) -> RunningHub | None:
    """Ask the hub at an address whether it serves; None: no hub answers there."""
    for everywhere, here in _FROM_HERE.items():
        url = url.replace(f"//{everywhere}:", f"//{here}:")
    status, ready = _get(f"{url}/readyz")
    if status not in (200, 503) or not isinstance(ready.get("ok"), bool):
        return None
    said = [name if value is True else f"{name}: {value}" for name, value in ready.items() if name != "ok"]
    # Without a token the gateway answers 401 there, and a hub without the gateway that there is no such page.
    asked, refused = _get(f"{url}{STATUS_PATH}") if ready["ok"] else (0, {})
    is_on = asked == 401 and refused.get("status") == 401
    return RunningHub(url, "" if ready["ok"] else ", ".join(said), has_gateway=is_on)


def _get(url: str) -> tuple[int, dict[str, object]]:
    """The status and the JSON object of an answer; 0 without one. No proxy is asked: the hub is here."""
    opener = build_opener(ProxyHandler({}))
    request = Request(url, headers={"Accept": "application/json"})  # noqa: S310  a hub recorded it
    try:
        try:
            answer = opener.open(request, timeout=WITHIN_S)
        except HTTPError as refusal:
            answer = refusal
        with answer:
            body = json.loads(answer.read(MAX_ANSWER_BYTES))
            return answer.status, body if isinstance(body, dict) else {}
    except (OSError, ValueError):
        return 0, {}
