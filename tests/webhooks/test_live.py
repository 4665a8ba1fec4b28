"""Webhooks of running hubs: asked for over real HTTP, delivered to real receivers, also past a kill -9."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from lab.callers import TLS, bearer
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage, manage
from lab.receivers import Received, receiving
from lab.waiting import until
from tests.channel.agents import sql
from tests.conftest import HOMES
from tests.webhooks.senders import end_leases, kill_sender, start_sender
from tests.webhooks.subscriptions import check_signed
from webhooks.service.sending import EACH_SUBSCRIPTION

pytestmark = pytest.mark.slow
SETTINGS = {"WEBHOOK_ALLOW_PRIVATE": 1}
MANY = 20


@dataclass
class Desk:
    """An owner at the native API of one hub."""

    hub: HubProcess
    http: httpx.Client

    def call(self, method: str, path: str = "", **options: Any) -> Any:
        answer = self.http.request(method, f"/api/v1/webhooks{path}", **options)
        assert answer.is_success, answer.text
        return answer.json()

    def add(self, url: str) -> Any:
        return self.call("POST", json={"url": url, "events": ["chat.event"]})

    def send_test(self, webhook: Any) -> str:
        event_id: str = self.call("POST", f"/{webhook['id']}/test")["eventId"]
        return event_id

    def statuses(self, webhook: Any) -> list[str]:
        return [row["status"] for row in self.call("GET", f"/{webhook['id']}/deliveries")["items"]]

    def wait_until_delivered(self, webhook: Any, count: int) -> None:
        expected = ["delivered"] * count
        until(lambda: self.statuses(webhook) == expected, f"{count} deliveries are written down", within_s=20)


@pytest.fixture(scope="module", params=HOMES)
def desk(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[Desk]:
    """A hub of each kind, the grown one with its worker, at real speed: what comes within 5 s was woken."""
    home = make_storage(request.param)
    with HubProcess.start(home, worker=home.is_grown, TEST_TIME_SCALE=1, **SETTINGS) as hub:
        headers = bearer(hub.mint("alice", "session"))
        with httpx.Client(base_url=hub.url, headers=headers, trust_env=False, verify=TLS, timeout=30) as http:
            yield Desk(hub, http)


def test_a_test_arrives_within_seconds_and_its_signatures_are_good(desk: Desk) -> None:
    with receiving() as receiver:
        webhook = desk.add(receiver.url)
        began = time.monotonic()
        for count in range(1, 5):
            event_id = desk.send_test(webhook)
            one = receiver.heard(count)[-1]
        assert time.monotonic() - began < 12  # woken each time: the schedule looks every 5 s
        manage(desk.hub.home.env, "rotate_webhook_keys")  # seals secrets anew while the hub runs
        event_id = desk.send_test(webhook)
        one = receiver.heard(5)[-1]
        body = check_signed(one, webhook["signingSecret"])
        assert (body["eventId"], body["type"]) == (event_id, "webhook.test")
        assert body["payload"]["webhookId"] == webhook["id"]
        desk.wait_until_delivered(webhook, 5)
        last = desk.call("GET", f"/{webhook['id']}/deliveries")["items"][0]
        again = desk.call("POST", f"/{webhook['id']}/deliveries/{last['id']}/replay")
        assert again == {"eventId": event_id}
        assert receiver.heard(6)[-1].body == one.body
        assert desk.call("GET", f"/{webhook['id']}")["lastDeliveryAt"] is not None


def test_whichever_process_is_killed_while_sending_no_event_is_lost(desk: Desk) -> None:
    alive = threading.Event()

    def answer(_: Received) -> int:
        return 200 if alive.wait(30) else 500

    with receiving(answer) as receiver:
        webhook = desk.add(receiver.url)
        queued = {desk.send_test(webhook) for _ in range(MANY)}
        receiver.heard(EACH_SUBSCRIPTION)
        kill_sender(desk.hub)
        alive.set()
        if desk.hub.worker is not None:
            assert desk.statuses(webhook).count("sending") == EACH_SUBSCRIPTION
        end_leases(desk.hub, "webhooks_delivery")
        start_sender(desk.hub)
        desk.wait_until_delivered(webhook, MANY)
        got = [one.headers["webhook-id"] for one in receiver.received]
    assert set(got) == queued
    assert len(got) == MANY + EACH_SUBSCRIPTION  # those on their way when it died came twice


@pytest.mark.parametrize("desk", ["embedded"], indirect=True)
def test_a_hub_told_to_leave_does_not_wait_for_a_slow_receiver(desk: Desk) -> None:
    ended = threading.Event()
    with receiving(lambda _: 200 if ended.wait(60) else 500) as receiver:
        webhook = desk.add(receiver.url)
        desk.send_test(webhook)
        receiver.heard(1)
        desk.hub.terminate()
        assert desk.hub.programs[0].exit_code(within_s=30) == 0
        # Had the hub waited until it gives a receiver up, after 10 s, the attempt would have ended.
        last = sql(desk.hub, "SELECT status, last_error FROM webhooks_delivery ORDER BY id DESC LIMIT 1")
        assert last == [("sending", "")]
        ended.set()
    desk.hub.serve(0)
