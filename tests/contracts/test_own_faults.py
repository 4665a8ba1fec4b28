"""A fault of the hub itself is logged and answered, also one that looks as if the client had left."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from a2a_bridge.service.responses import CallAnswer
from a2a_bridge.surface.asgi import RpcWire
from a2a_bridge.wire.dialects.hub import HUB
from agents.core.ledger import Ledger
from agents.links.channel.events import EVENT_PATH, HookEvents
from hub.wiring import HubServices
from kit.asgi import ClientLeft, HttpRequest

AGENT = "/api/a2a/v1/agents/ada/desk"


class Overdue(Ledger):
    """A ledger that waited in vain."""

    async def look_up(self, *_: object) -> Any:
        raise TimeoutError


OVERDUE = Overdue(home="test")


def overdue(surface: Any) -> Any:
    """The same surface with that ledger."""
    return replace(surface, runner=replace(surface.runner, ledger=OVERDUE))


SURFACES: dict[str, tuple[str, Callable[[HubServices], Any]]] = {
    "JSON-RPC": (AGENT, lambda hub_services: partial(overdue(hub_services.bridge), handle="ada/desk")),
    "HTTP+JSON": (
        f"{AGENT}/message:send",
        lambda hub_services: partial(overdue(hub_services.http_json), handle="ada/desk", rest="message:send"),
    ),
    "hooks": (
        EVENT_PATH,
        lambda hub_services: HookEvents(ledger=OVERDUE, link=hub_services.link, meter=hub_services.meter),
    ),
}


@pytest.mark.parametrize(("path", "surface"), SURFACES.values(), ids=SURFACES)
async def test_it_is_a_500_and_stands_in_the_log(
    path: str, surface: Callable[[HubServices], Any], caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    await surface(HubServices())(HttpRequest(scope, receive), send=send)
    assert sent[0]["status"] == 500
    assert b"internal error" in sent[-1]["body"]
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [TimeoutError]


@pytest.mark.parametrize("failure", [ConnectionResetError, TimeoutError])
async def test_a_client_that_cannot_be_sent_to_has_left(failure: type[OSError]) -> None:
    async def nothing() -> Any:
        raise AssertionError("an answer at once reads nothing")

    async def gone(message: Any) -> None:
        raise failure

    with pytest.raises(ClientLeft):
        await CallAnswer(nothing, gone, RpcWire(HUB)).at_once({})
