"""Outside programs, and the rows of the networks that they ask: what tests of the endpoint share."""

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from clawbridge.agnt.signing import read_key, sign_payload
from lab.callers import ANSWER_WITHIN_S, TLS, bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.agnt.description import check_described
from tests.channel.agents import sql

PATH = "/a2a/v1"
SENDER = "my_agent_001"
VENUE: Json = {
    "agent_name": "",
    "name": "",
    "description": "",
    "category": "restaurant",
    "area": "Canggu",
    "city": "Badung",
    "tags": '["sea"]',
    "price_range": "$$",
    "referral_fee_pct": 7,
    "priority_rank": 0,
    "is_active": True,
    "url": "",
}
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Key:
    """An AGNT key and what its sender signs with."""

    token: str
    secret: str
    key_id: str

    def sign(self, payload: Json, *, at: datetime | None = None, sender: str = SENDER) -> Json:
        """A payload as this key signs it."""
        at_s = int((at or datetime.now(UTC)).timestamp())
        return sign_payload(payload, key=read_key(self.secret), sender=sender, at_s=at_s)


def new_login() -> str:
    """An owner that no other test has."""
    return f"keeper-{uuid.uuid4().hex[:10]}"


def mint(
    hub: HubProcess,
    login: str,
    tier: str = "pro",
    scope: str = "full",
    *,
    customer: str = "",
    senders: Sequence[str] = (),
) -> Key:
    """A new key of that owner's network, over REST: a command would start Django for each."""
    body = {"name": "of a test", "tier": tier, "scope": scope, "customer": customer, "senders": list(senders)}
    with httpx.Client(base_url=hub.url, timeout=ANSWER_WITHIN_S, trust_env=False, verify=TLS) as client:
        answer = client.post("/api/v1/network/keys", json=body, headers=bearer(hub.mint(login, "session")))
    assert answer.status_code == 201, answer.text
    made = answer.json()
    return Key(made["key"], made["secret"], made["id"])


def network_id(hub: HubProcess, login: str) -> int:
    statement = "SELECT id FROM agnt_network WHERE owner_id = (SELECT id FROM accounts_user WHERE login = ?)"
    [(found,)] = sql(hub, statement, login)
    return int(found)


def add_venue(hub: HubProcess, login: str, slug: str, **columns: Any) -> str:
    """A new venue; its `venue_id`."""
    public_id, now = uuid.uuid4(), datetime.now(UTC)
    row = VENUE | {"name": slug.replace("-", " ").title()} | columns
    row |= {"network_id": network_id(hub, login), "slug": slug, "created_at": now, "updated_at": now}
    row["public_id"] = public_id if hub.home.is_grown else public_id.hex
    if not hub.home.is_grown:
        row |= dict.fromkeys(("created_at", "updated_at"), f"{now:%Y-%m-%d %H:%M:%S.%f}")
    marks = ", ".join("?" * len(row))
    sql(hub, f"INSERT INTO agnt_venue ({', '.join(row)}) VALUES ({marks})", *row.values())
    note_change(hub, login)
    return str(public_id)


def note_change(hub: HubProcess, login: str) -> None:
    """Have every process read the venues anew."""
    statement = "UPDATE agnt_network SET venues_version = venues_version + 1 WHERE id = ?"
    sql(hub, statement, network_id(hub, login))


def count(hub: HubProcess, login: str, table: str, condition: str = "TRUE") -> int:
    [(found,)] = sql(
        hub, f"SELECT count(*) FROM {table} WHERE network_id = ? AND {condition}", network_id(hub, login)
    )
    return int(found)


def stamp(**ago: float) -> str:
    """A timestamp that no other envelope has; by default it is now."""
    at = datetime.now(UTC) - timedelta(**ago)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{next(_numbers):06d}Z"


def envelope(intent: str = "network.ping", payload: Json | None = None, **fields: Any) -> Json:
    """An envelope with these fields; a field that is None is left out."""
    whole = {
        "protocol": "openclaw/a2a/v1",
        "from": SENDER,
        "to": "network:agnt",
        "intent": intent,
        "payload": payload or {},
        "ttl_ms": 5000,
        "timestamp": stamp(),
    }
    whole |= {name.removesuffix("_"): value for name, value in fields.items()}
    return {name: value for name, value in whole.items() if value is not None}


class Program:
    """An outside program with a key. `client`: of one hub process."""

    def __init__(self, client: httpx.AsyncClient, key: Key) -> None:
        self.client = client
        self.key = key

    async def post(self, body: Json | bytes | str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Send a body as it is."""
        content = json.dumps(body) if isinstance(body, dict) else body
        sent = {"Content-Type": "application/json", **bearer(self.key.token), **(headers or {})}
        return await self.client.post(PATH, content=content, headers=sent)

    async def send(
        self, intent: str = "network.ping", payload: Json | None = None, **fields: Any
    ) -> httpx.Response:
        return await self.post(envelope(intent, payload, **fields))

    async def confirm(self, venue_id: str, **payload: Any) -> httpx.Response:
        return await self.send("booking.confirm", {"venue_id": venue_id, **payload})


def program(hub: HubProcess, key: Key, index: int = 0) -> Program:
    """A program that asks one of the processes; close its `client`."""
    return Program(web(hub.urls[index]), key)


def error_of(answer: httpx.Response) -> str:
    """The code of an error, which the header says, too."""
    check_described(answer)
    error = answer.json()["payload"]["error"]
    assert answer.headers["x-a2a-error"] == error["code"]
    assert answer.json()["payload"]["status"] == "error"
    return str(error["code"])


def result_of(answer: httpx.Response) -> Json:
    """The payload of a success."""
    assert answer.status_code == 200, answer.text
    check_described(answer)
    payload: Json = answer.json()["payload"]
    assert "error" not in payload
    return payload
