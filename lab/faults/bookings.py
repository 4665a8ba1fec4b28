"""Outside programs that book at venues by AGNT envelopes, and the agents of venues."""

import asyncio
import json
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from lab.callers import Json, bearer
from lab.channel_agent import ChannelAgent
from lab.faults.agents import EchoAgent
from lab.faults.oplog import OpLog
from lab.faults.requests import ANSWER_WITHIN_S, AskAnswer, read_json

TWIN_SHARE = 0.1
AGAIN_AFTER_S, AGAIN_WITHIN_S = 0.5, 100.0
PAUSE_S = (0.05, 0.3)
OPEN_BREAKER = "circuit_open"  # the hub asks this venue again after minutes


class VenueAgent(EchoAgent):
    """The agent of a venue: it confirms each order, and each cancellation. Logs both."""

    def on_prompt(self, prompt: Json) -> None:
        """Log the envelope, then answer it."""
        envelope = envelope_in(prompt)
        order, is_order = envelope["payload"], envelope["intent"] == "booking.confirm"
        named = {"booking_id": order["booking_id"], "nonce": order.get("slot_id", ""), "chat_id": prompt["chatId"]}
        self.log.write("order" if is_order else "cancel", agent=self.handle, **named)
        ChannelAgent.on_prompt(self, prompt)

    async def answer(self, prompt: Json) -> None:
        """Reply to one envelope after a little while."""
        await asyncio.sleep(random.uniform(0, self.takes_s))
        is_order = envelope_in(prompt)["intent"] == "booking.confirm"
        await self.reply(prompt["chatId"], json.dumps({"status": "confirmed" if is_order else "cancelled"}))


def envelope_in(prompt: Json) -> Json:
    """The envelope of a prompt: its data part."""
    envelope: Json = next(part["data"] for part in prompt["parts"] if "data" in part)
    return envelope


@dataclass(frozen=True)
class BookingProgram:
    """A program with a key of a network. `venues`: the slugs of those at which it books."""

    key: str
    venues: Sequence[str]
    log: OpLog

    async def book_on(self, clients: Sequence[httpx.AsyncClient], goes_on: Callable[[], bool]) -> None:
        """Confirm one booking after the other."""
        while goes_on():
            await self.book(clients, random.randrange(len(clients)))
            await asyncio.sleep(random.uniform(*PAUSE_S))

    async def book(self, clients: Sequence[httpx.AsyncClient], first: int) -> None:
        """Send one confirmation, some at all processes at once, again and again until it is answered."""
        order, attempt = self._order(), 0
        if random.random() < TWIN_SHARE:
            await asyncio.gather(*(self._send(client, url, order, url) for url, client in enumerate(clients)))
            attempt = len(clients)
        until = time.monotonic() + AGAIN_WITHIN_S
        while True:
            url = (first + attempt) % len(clients)
            answer = await self._send(clients[url], url, order, attempt)
            attempt += 1
            if answer.outcome == "completed" or is_final(answer) or time.monotonic() > until:
                break
            await asyncio.sleep(AGAIN_AFTER_S)
        told = {"outcome": answer.outcome, "status": answer.status, "text": answer.text}
        self.log.write("confirmed", nonce=order["payload"]["slot_id"], attempts=attempt, **told)

    def _order(self) -> Json:
        nonce, now = secrets.token_hex(8), datetime.now(UTC)
        note = f"{nonce} what did I say?"
        payload = {"venue_id": random.choice(self.venues), "slot_id": nonce, "party_size": 2, "user_note": note}
        return {
            "from": "faults",
            "to": "network:agnt",
            "intent": "booking.confirm",
            "timestamp": f"{now:%Y-%m-%dT%H:%M:%S.%f}Z",
            "payload": payload,
        }

    async def _send(self, client: httpx.AsyncClient, url: int, order: Json, attempt: int) -> AskAnswer:
        began, began_in = time.monotonic(), self.log.fault
        answer = await confirm(client, self.key, order)
        took_s = round(time.monotonic() - began, 3)
        about = {"nonce": order["payload"]["slot_id"], "venue": order["payload"]["venue_id"], "url": url}
        told = {"outcome": answer.outcome, "status": answer.status, "text": answer.text, "code": answer.code}
        ends: Json = {"booking_id": answer.task_id, "took_s": took_s, "attempt": attempt, "began_in": began_in}
        self.log.write("confirm", **about, **told, **ends)
        return answer


async def confirm(client: httpx.AsyncClient, key: str, order: Json) -> AskAnswer:
    """Send one confirmation. `task_id` of the answer: the id of the booking; `text`: the code of an error.

    `code`: 1 if the same envelope may succeed later.
    """
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            response = await client.post("/a2a/v1", json=order, headers=bearer(key))
    except (httpx.ConnectError, httpx.ConnectTimeout) as failure:
        return AskAnswer("unsent", text=type(failure).__name__)
    except (TimeoutError, httpx.TimeoutException):
        return AskAnswer("late", text="no answer in time")
    except httpx.TransportError as failure:
        return AskAnswer("broken", text=type(failure).__name__)
    payload: Any = read_json(response).get("payload", {})
    if response.status_code == 200 and "booking_id" in payload:
        return AskAnswer("completed", 200, task_id=payload["booking_id"])
    error = payload.get("error", {"code": response.text[:150]})
    return AskAnswer("refused", response.status_code, error["code"], code=int(bool(error.get("retryable"))))


def is_final(answer: AskAnswer) -> bool:
    """True if an envelope that got this error should not be sent again soon."""
    return answer.outcome == "refused" and (not answer.code or answer.text == OPEN_BREAKER)
