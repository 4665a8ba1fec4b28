"""A live hub with something of everything in it, and real values for the names in its paths."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import requests

from lab.callers import bearer, send
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.gateway.client import GatewayClient
from tests.http_json import client

WITHIN_S = 30
HOOK = "http://127.0.0.1:9/hook"  # nothing listens there
CHANGED = {"patchOneAgent", "deleteOneAgent", "postHaltAgent", "deleteHaltAgent"}  # on agents of their own
ENDED = {"deleteOneSession", "postArchiveSession"}  # these a session
ASKED = {"postResolvePermission"}  # these one whose agent asks leave
SENT_TO_WEBHOOK = {"postSendTest", "postReplay"}  # not while it is paused
AGNT_KEY = "agntKey"
PERMISSION = "leave-1"
TEAM = "demo-team"  # a group
OF_STAFF, GUEST = "/admin/accounts", "guest"  # an account that the staff changes
FORGOTTEN = "dreamer"  # an agent of the team that is deleted
NOT_OFFERED = {  # known, and a 404 whatever is asked
    "deleteOneDesktop",
    "postDesktopSessions",
    "getDesktopShares",
    "postDesktopShares",
    "deleteOneDesktopShare",
    "postPreflightSession",
    "postKillSession",
    "postRestartSession",
    "postSoftRestartSession",
    "postSessionInput",
    "postRotateChannelToken",
    "getSessionScreenshot",
}
NOT_BY_OWNER = {
    *CHANGED,
    "deleteOneToken",
    "deleteOneWebhook",
    "postRevokeAuthSession",
}  # any number may be one that others need


BOOKED = """
from agnt.models import Booking, Cancellation, Venue
venue = Venue.objects.get(slug="la-brisa")
booking = Booking.objects.create(network=venue.network, venue=venue, sender="agent_1")
Cancellation.objects.create(network=venue.network, venue=venue, public_id=booking.public_id, state="given_up")
print(booking.public_id)
"""


FAILED = """
from django.utils import timezone
from agents.models import Agent, FailureGroup
now, agent = timezone.now(), Agent.objects.get(handle="demo/echo")
moments = {"first_at": now, "last_at": now, "opened_at": now}
print(FailureGroup.objects.create(agent=agent, reason="timeout", digest="d", count=1, **moments).pk)
"""


REFRESHED = """
from datetime import timedelta
from django.utils import timezone
from accounts.models import ClientGrant, User
texts = {"app_name": "an agent", "scopes": "ask", "client_digest": "c", "family_digest": "f", "digest": "d"}
expires_at = timezone.now() + timedelta(days=9)
print(ClientGrant.objects.create(user=User.objects.get(login="guest"), expires_at=expires_at, **texts).pk)
"""


@dataclass
class Seeded:
    """The hub of `DEMO`, its owner's tokens by security scheme, and what `{names}` in paths stand for."""

    hub: HubProcess
    tokens: dict[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    free_session: str = ""
    ended: str = ""
    asked: str = ""
    networks: int = 0
    key_webhook: int = 0
    ended_share: int = 0
    deleted_thread: str = ""
    http: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.http.trust_env = False

    def call(self, method: str, path: str, **options: Any) -> Any:
        """One call as the owner; the answer's JSON, None without a body."""
        url, headers = f"{self.hub.url}/api/v1{path}", bearer(self.tokens["bearer"])
        answer = self.http.request(method, url, headers=headers, timeout=WITHIN_S, **options)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def post(self, path: str, token: str, **body: Any) -> Any:
        """Send JSON to any address with any token; the answer's JSON."""
        answer = self.http.post(f"{self.hub.url}{path}", headers=bearer(token), json=body, timeout=WITHIN_S)
        assert answer.ok, answer.text
        return answer.json()

    def prepare(self, operation: Any) -> None:
        """Undo what earlier generated cases may have changed that those of an operation depend on.

        No agent and no caller is halted: a generated halt may name the demo, as the texts that schemathesis tries
        depend on the modules that are loaded. An operation that takes an AGNT key gets a network of its own, with
        its first rules and limits; if it is about a webhook, the key has one. One that sends to a webhook finds it
        resumed. One that decides whether a tool may run finds a request that has not expired.
        """
        for halt in self.call("GET", "/admin/halts")["items"]:
            if halt["liftedAt"] is None:
                self.call("DELETE", f"/admin/halts/{halt['id']}")
        if operation.definition.raw["operationId"] in ASKED:
            self.asked = asyncio.run(_register(self, asks_leave=True))
        if operation.definition.raw["operationId"] == "deleteOneMember":
            self.call("PUT", f"/groups/{TEAM}/members/{self.names['login']}", json={})
        if operation.path.startswith(f"/api/v1{OF_STAFF}"):
            self.call("PATCH", f"{OF_STAFF}/{GUEST}", json={"isActive": True, "isStaff": False})
            self.call("PUT", f"{OF_STAFF}/{GUEST}/groups/{TEAM}", json={})
        if operation.definition.raw["operationId"] == "deleteOneGroupInvitation":
            self.names["invitation_id"] = self.call("POST", f"/groups/{TEAM}/invitations", json={})["id"]
        if operation.definition.raw["operationId"] in SENT_TO_WEBHOOK:
            url = f"{self.hub.url}/api/v1/webhooks/{self.names['webhook_id']}"
            headers = bearer(self.tokens["bearer"])
            resumed = self.http.patch(url, headers=headers, json={"paused": False}, timeout=WITHIN_S)
            assert resumed.ok or resumed.status_code == 404, resumed.text  # the case that deletes it may have run
        if AGNT_KEY not in schemes_of(operation):
            return
        self.networks += 1
        owner = self.hub.mint(f"network-{self.networks}", "session")
        made = self.post("/api/v1/network/keys", owner, name="a program", scope="booking")
        self.tokens[AGNT_KEY] = made["key"]
        if "{webhook_id}" in operation.path:
            subscribed = self.post("/network/webhooks", self.tokens[AGNT_KEY], url=HOOK, events=["*"])
            self.key_webhook = subscribed["id"]

    def headers(self, operation: Any, *, is_own: bool) -> dict[str, str]:
        """The credential an operation takes: one to spend where it ends, another user's where it hurts."""
        definition = operation.definition.raw
        if definition["operationId"] == "postLogout":
            return bearer(self.tokens["spent"])
        if definition["operationId"] in NOT_BY_OWNER and not is_own:
            return bearer(self.hub.mint("bob", "session"))
        schemes = schemes_of(operation)
        return bearer(self.tokens[schemes[0]]) if schemes else {}

    def own(self, operation: Any) -> dict[str, Any]:
        """Values for the operation's path that lead to what there is."""
        name = operation.definition.raw["operationId"]
        values = self.names | ({"agent_id": self.changed[name]} if name in CHANGED else {})
        values |= {"agent_name": FORGOTTEN} if name == "deleteOneTeamAgent" else {}
        values |= {"public_id": self.ended} if name in ENDED else {}
        values |= {"public_id": self.asked} if name in ASKED else {}
        values |= {"thread_id": self.deleted_thread} if name == "deleteCallerThread" else {}
        values |= {"share_id": self.ended_share} if name == "deleteOneAnswerShare" else {}
        values |= {"webhook_id": self.key_webhook} if AGNT_KEY in schemes_of(operation) else {}
        return {one: value for one, value in values.items() if f"{{{one}}}" in operation.path}


def schemes_of(operation: Any) -> list[str]:
    """The security schemes that an operation takes, its first first."""
    return [name for one in operation.definition.raw.get("security", ()) for name in one]


def seed(hub: HubProcess) -> Seeded:
    """The demo's owner, of the staff, with a question answered, agents to change, and credentials to spend."""
    staff = hub.mint("demo", "session", admin=True)
    tokens = {"bearer": staff, "channelToken": hub.mint("demo", "channel")}
    seeded = Seeded(hub, tokens | {"spent": hub.mint_again("demo", "session")})
    agent = seeded.call("GET", "/agents/by-handle/demo/echo")
    hub.mint("bob", "session")  # a login that is known
    hub.mint("alice", "session")
    hub.mint(GUEST, "session")
    task_id = asyncio.run(send(hub.url, "demo/echo", "hello", tokens["bearer"]))["id"]
    asyncio.run(send(hub.url, "demo/echo", "forget this", tokens["bearer"]))
    deleted, kept = seeded.call("GET", "/threads")["items"][:2]
    seeded.deleted_thread = deleted["id"]
    for name in sorted(CHANGED):
        body = {"sessionId": asyncio.run(_register(seeded)), "name": name, "slug": name.lower()}
        seeded.changed[name] = seeded.call("POST", "/agents", json=body)["id"]
    seeded.free_session, seeded.ended = asyncio.run(_register(seeded)), asyncio.run(_register(seeded))
    manage(hub.home.env, "load_team", "--login", "demo")
    sessions = seeded.call("GET", "/auth-sessions")["items"]
    form = {"file": ("day.txt", b"what a day", "text/plain")}
    webhook = seeded.call("POST", "/webhooks", json={"url": HOOK, "events": ["*"]})["id"]
    seeded.call("POST", f"/webhooks/{webhook}/test")
    shares = [seeded.call("POST", "/shares", json={"taskId": task_id, "audience": "link"}) for _ in range(2)]
    seeded.ended_share = shares[1]["id"]
    seeded.call("POST", "/groups", json={"slug": TEAM, "name": "The team"})
    seeded.names = {
        "share_id": shares[0]["id"],
        "token": shares[0]["url"].rpartition("/")[2],
        "thread_id": kept["id"],
        "owner": "demo",
        "account": GUEST,
        "credential_id": seeded.call("GET", f"{OF_STAFF}/{GUEST}/sessions")["items"][0]["id"],
        "grant_id": int(manage(hub.home.env, "shell", "-v", "0", "--no-imports", "-c", REFRESHED)),
        "login": "alice",
        "group_slug": TEAM,
        "invitation_id": seeded.call("POST", f"/groups/{TEAM}/invitations", json={})["id"],
        "metric": "events.total",
        "slug": "echo",
        "agent_id": agent["id"],
        "public_id": agent["sessionId"],
        "peer": "demo/echo",
        "agent_name": "alpha",
        "letter_id": 1,
        "model": "agent/demo/echo",
        "webhook_id": webhook,
        "delivery_id": seeded.call("GET", f"/webhooks/{webhook}/deliveries")["items"][0]["id"],
        "proposal_id": asyncio.run(_propose(seeded)),
        "file_id": seeded.call("POST", f"/sessions/{seeded.free_session}/files", files=form)["id"],
        "token_id": seeded.call("POST", "/tokens/channel", json={"name": "spare"})["id"],
        "key_id": seeded.call("POST", "/gateway/keys", json={"name": "spare"})["keyId"],
        "venue_id": seeded.call("POST", "/network/venues", json={"slug": "la-brisa", "name": "La Brisa"})["id"],
        "api_key_id": seeded.call("POST", "/network/keys", json={"name": "spare"})["id"],
        "booking_id": manage(hub.home.env, "shell", "-v", "0", "-c", BOOKED).strip(),
        "failure_id": int(manage(hub.home.env, "shell", "-v", "0", "--no-imports", "-c", FAILED)),
        **_evaluate(seeded),
        "kind": "budget",
        "request_id": PERMISSION,
        "task_id": task_id,
        "response_id": task_id,
        "ask_id": task_id,
        "chat_id": seeded.call("GET", f"/questions?task={task_id}")["items"][0]["id"],
        "config_id": asyncio.run(_have_told(seeded, task_id)),
        "prefix": next(one["id"] for one in sessions if not one["isCurrent"])[:12],
    }
    return seeded


def _evaluate(seeded: Seeded) -> dict[str, int]:
    """A set of saved questions, and a run of it that was stopped."""
    asked = {"text": "hi", "expected": "contains", "expectation": "hi"}
    body = {"agent": "demo/echo", "name": "Greetings", "questions": [asked]}
    made = seeded.call("POST", "/evaluations", json=body)["id"]
    run = seeded.call("POST", f"/evaluations/{made}/runs")["id"]
    seeded.call("POST", f"/evaluations/{made}/runs/{run}/stop")
    return {"set_id": made, "run_id": run}


async def _propose(seeded: Seeded) -> int:
    """A proposal of the demo's team; its row."""
    async with GatewayClient(seeded.hub.url, seeded.tokens["bearer"]) as operator:
        await operator.propose("p-1")
    return int(seeded.call("GET", "/team/proposals")["items"][0]["id"])


async def _have_told(seeded: Seeded, task_id: str) -> str:
    """A push address of a task; its id."""
    async with client(seeded.hub.url, "demo/echo", seeded.tokens["bearer"]) as owner:
        told = await owner.post(f"tasks/{task_id}/pushNotificationConfigs", {"url": HOOK})
    return str(told["id"])


async def _register(seeded: Seeded, *, asks_leave: bool = False) -> str:
    async with ChannelAgent(seeded.hub.url, seeded.tokens["channelToken"]) as peer:
        assert peer.session_id is not None
        if asks_leave:
            await peer.send(type="permission_request", requestId=PERMISSION, tool="Bash", inputPreview="ls")
            await peer.send(type="list_agents_request", correlationId="after")
            await peer.heard("list_agents_response")
        return peer.session_id
