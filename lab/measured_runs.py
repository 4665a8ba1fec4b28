"""`python -m lab.measured_runs URL`: the product's modules and functions that two requests run through, as JSON.

One is a REST PATCH of an agent, from Django's handler to its answer. The other is a webhook delivery to the URL,
from the due row to the stored outcome. Both are made in the database of the environment, which has all tables.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
django.setup()

from django.test import Client  # noqa: E402

from accounts.models import Credential, User  # noqa: E402
from accounts.tokens import mint  # noqa: E402
from agents.core.directory import publish_agent  # noqa: E402
from agents.models import Session  # noqa: E402
from kit.outbox import Sender  # noqa: E402
from lab import ROOT  # noqa: E402
from webhooks.catalog import TEST  # noqa: E402
from webhooks.models import Delivery  # noqa: E402
from webhooks.outbox import OutboxEvent, queue  # noqa: E402
from webhooks.sending import WebhookOutbox, client  # noqa: E402
from webhooks.subscription_changes import subscribe  # noqa: E402

PRODUCT = (
    *("a2a_bridge", "accounts", "agents", "gateway", "hub", "kit", "mcp_server", "openai_api", "operators"),
    "webhooks",
)
TRACEPARENT = f"00-{1:032x}-{1:016x}-01"
CHANGES = {"tagline": "answers slowly", "dailyBudgetQueries": 70, "access": "public"}


@dataclass
class Run:
    """Which code of the product ran."""

    codes: set[CodeType] = field(default_factory=set)

    def names(self) -> dict[str, list[str]]:
        """The modules and the functions, each once. Comprehensions and lambdas are part of their functions."""
        found = set()
        for code in self.codes:
            path = Path(code.co_filename)
            if (
                not code.co_name.startswith("<")
                and path.is_relative_to(ROOT)
                and path.relative_to(ROOT).parts[0] in PRODUCT
            ):
                found.add((str(path.relative_to(ROOT)), code.co_qualname))
        functions = sorted(f"{path}:{name}" for path, name in found)
        return {"modules": sorted({path for path, _ in found}), "functions": functions}


@contextmanager
def recorded() -> Iterator[Run]:
    """Records what runs meanwhile, in this thread and in those that it starts."""
    ran = Run()

    def record(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            ran.codes.add(frame.f_code)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield ran
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def run_patch() -> Run:
    """Change three fields of an agent, the second time recorded."""
    owner = User.objects.create(login="measured")
    session = Session.objects.create(owner=owner, routing_name="@measured")
    agent = publish_agent(owner, session, {"name": "Measured"}, slug="measured").agent
    bearer = f"Bearer {mint(owner, Credential.Kind.SESSION, 'measured').token}"
    django_client = Client()  # loads the middleware with its first request
    for tagline in ("first", "second"):
        with recorded() as ran:
            answer = django_client.patch(
                f"/api/v1/agents/{agent.pk}",
                json.dumps({**CHANGES, "tagline": tagline}),
                content_type="application/json",
                headers={"Authorization": bearer, "Host": "127.0.0.1"},
            )
        _check(answer.status_code == 200, answer.content)
    return ran


def run_delivery(url: str) -> Run:
    """Deliver to this receiver twice, the second time recorded."""
    owner = User.objects.create(login="hooked")
    made = subscribe(owner, {"url": url, "events": "*"})
    happening = OutboxEvent(type=TEST, audience=(), payload={}, traceparent=TRACEPARENT)
    for _ in range(2):
        queue([(made.subscription.pk, happening)])
        sender = Sender(WebhookOutbox(client()))
        with recorded() as ran:
            sender.run()
    outcomes = list(Delivery.objects.values_list("status", "last_error"))
    _check(outcomes == [("delivered", "")] * 2, outcomes)
    return ran


def _check(is_good: bool, found: object) -> None:
    if not is_good:
        raise RuntimeError(f"what is measured failed: {found!r}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"patch": run_patch().names(), "delivery": run_delivery(sys.argv[1]).names()}))
