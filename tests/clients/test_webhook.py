"""`claw webhook add`, `list`, `test`, `delete`, against a receiver of one's own."""

import json

from lab.hub_process import HubProcess
from lab.receivers import receiving
from lab.waiting import until
from tests.clients.claw import Claw, Json, claw
from tests.clients.shapes import WEBHOOK, check, iso, items, matching, number, one_of, text
from tests.webhooks.subscriptions import check_signed

DELIVERY = {"id": number, "type": text, "status": one_of("pending", "sending", "delivered", "failed")}
DELIVERY |= {"attempts": number, "queuedAt": iso}


def test_add_test_list_delete(clients_hub: HubProcess) -> None:
    owner = claw(clients_hub, "owner")
    with receiving() as receiver:
        body = {"url": receiver.url, "events": ["chat.event", "agent.reply"], "filters": {"routingName": "@proj"}}
        made = check(owner.call("POST", "/webhooks", body), WEBHOOK | {"signingSecret": matching(".{16,}")})
        assert made["filters"] == {"routingName": "@proj"}
        sent = owner.call("POST", f"/webhooks/{made['id']}/test")
        check(sent, {"eventId": text})
        (one,) = receiver.heard(1)
        told = check_signed(one, made["signingSecret"])
        assert json.loads(one.body) == told
        assert (told["eventId"], told["type"]) == (sent["eventId"], "webhook.test")
        check(told, {"eventId": text, "type": text, "ts": iso})
        until(lambda: listed(owner, made)["lastDeliveryAt"], "the delivery is written down", within_s=15)
        rows = owner.call("GET", f"/webhooks/{made['id']}/deliveries")
        assert [row["status"] for row in check(rows, items(DELIVERY))["items"]] == ["delivered"]
        catalog = owner.call("GET", "/webhooks/events")["items"]
        assert "webhook.test" in [row["type"] for row in catalog]
        assert owner.send("DELETE", f"/webhooks/{made['id']}").status in (200, 204)
        assert made["id"] not in [row["id"] for row in owner.call("GET", "/webhooks")["items"]]


def listed(owner: Claw, made: Json) -> Json:
    """The row of a webhook, which shows no secret."""
    rows = check(owner.call("GET", "/webhooks"), items(WEBHOOK))["items"]
    (row,) = [one for one in rows if one["id"] == made["id"]]
    assert "signingSecret" not in row
    return row
