"""A server that takes meter events as Stripe documents it, on a real port."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from lab.receivers import Handler, serving_http

API_KEY = "sk_test_of_these_tests"
PATH = "/v1/billing/meter_events"
Params = dict[str, str]


def error(kind: str, code: str) -> dict[str, Any]:
    return {"error": {"type": kind, "code": code, "message": "as Stripe would say it"}}


@dataclass
class StripeServer:
    """`events`: what counts, by identifier. `answered`: by idempotency key, with the parameters that it came with.

    `interfere`: called after an event counts and before the answer; a status other than 0 is answered instead.
    """

    url: str
    events: dict[str, Params] = field(default_factory=dict)
    answered: dict[str, tuple[Params, int, dict[str, Any]]] = field(default_factory=dict)
    requests: list[Params] = field(default_factory=list)
    interfere: Callable[[Params], int] = lambda _: 0
    refuse: Callable[[Params], int] = lambda _: 0

    def take(self, path: str, headers: Any, params: Params) -> tuple[int, dict[str, Any]]:
        self.requests.append(params)
        if headers["Authorization"] != f"Bearer {API_KEY}":
            return 401, error("invalid_request_error", "invalid_api_key")
        key = headers["Idempotency-Key"]
        if path != PATH or not key:
            return 404, error("invalid_request_error", "url_invalid")
        if status := self.refuse(params):
            return status, error("invalid_request_error", "refused")
        if key in self.answered:
            before, status, body = self.answered[key]
            return (status, body) if before == params else (400, error("idempotency_error", "other_parameters"))
        if params["identifier"] in self.events:
            return 400, error("invalid_request_error", "identifier_taken")
        self.events[params["identifier"]] = params
        body = {"object": "billing.meter_event", "identifier": params["identifier"], "livemode": False}
        self.answered[key] = (params, 200, body)
        instead = self.interfere(params)
        return (instead, error("api_error", "interfered")) if instead else (200, body)

    def totals(self) -> dict[tuple[str, str], int]:
        """US cents by customer and Unix time."""
        return {
            (one["payload[stripe_customer_id]"], one["timestamp"]): int(one["payload[value]"])
            for one in self.events.values()
        }


@contextmanager
def stripe_server() -> Iterator[StripeServer]:
    """One on a free port, until the block ends."""

    class StripeHandler(Handler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, body = found.take(self.path, self.headers, dict(parse_qsl(text)))
            self.answer(status, json.dumps(body).encode(), Content_Type="application/json")

    with serving_http(StripeHandler) as port:
        found = StripeServer(f"http://127.0.0.1:{port}")
        yield found
