"""The users of a run: owners with agents and venues, teams, callers with tokens, an owner's webhook receiver."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from standardwebhooks import Webhook, WebhookVerificationError

from lab.agents import publish
from lab.callers import Json, bearer, web
from lab.faults.agents import EchoAgent
from lab.faults.bookings import BookingProgram, VenueAgent
from lab.faults.messages import MessageTeam
from lab.faults.oplog import OpLog
from lab.faults.stack import FaultStack
from lab.receivers import Received, Receiver, receiving

OWNERS = TEAMS = 4
VENUES = ("walk-in", "asked")  # the hub itself accepts orders of the one, an agent those of the other
WHOLE_DAY = 100_000
FRUGAL = 60  # what the frugal agent of each owner may be asked a day
ONLINE_WITHIN_S = 60
EVENTS = ["agent.replied"]
AgentKind = TypeVar("AgentKind", bound=EchoAgent)


@dataclass
class Participants:
    """`callers` are logins whose session tokens are in `stack.tokens`. The first owner has a webhook.

    `agents`: those that the load asks. `programs`: one of each owner's network. `teams`: of further owners.
    """

    stack: FaultStack
    log: OpLog
    agents: list[EchoAgent] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)
    programs: list[BookingProgram] = field(default_factory=list)
    teams: list[MessageTeam] = field(default_factory=list)
    receiver: Receiver | None = None
    answer_webhook: Callable[[Received], int] = lambda _: 204
    _receiving: Any = None
    _secret: str = ""
    _venue_agents: list[VenueAgent] = field(default_factory=list)

    async def settle(self, *, agents: int, callers: int) -> None:
        """Mint the tokens, connect and publish the agents, offer venues, let the teams take their seats.

        Every sixth agent has a small daily budget.
        """
        owners = [f"owner-{number}" for number in range(OWNERS)]
        teams = [f"team-{number}" for number in range(TEAMS)]
        self.callers = [f"caller-{number:03}" for number in range(callers)]
        people = [*((owner, kind) for owner in owners for kind in ("session", "channel"))]
        people += [(team, "channel") for team in teams]
        await asyncio.to_thread(self.stack.mint, [*people, *((login, "session") for login in self.callers)])
        for number in range(agents):
            self.agents.append(self._agent(EchoAgent, owners[number % OWNERS], number))
        await asyncio.gather(*(asyncio.wait_for(one.online.wait(), ONLINE_WITHIN_S) for one in self.agents))
        for number, agent in enumerate(self.agents):
            budget = FRUGAL if number % 6 == 5 else WHOLE_DAY
            await self.publish(agent, owners[number % OWNERS], f"agent-{number}", dailyBudgetQueries=budget)
        await self._subscribe(owners[0])
        for number, owner in enumerate(owners):
            self.programs.append(await self._offer_venues(owner, number))
        for team in teams:
            self.teams.append(MessageTeam(team, self.stack.tokens[team, "channel"], self.stack.urls, self.log))
            self.teams[-1].start()

    async def publish(self, agent: EchoAgent, owner: str, slug: str, **fields: Any) -> None:
        """Publish a connected agent as `owner/slug`."""
        assert agent.session_id is not None
        token = self.stack.tokens[owner, "session"]
        agent.handle = (await publish(self.stack.hub, token, agent.session_id, slug, **fields))["handle"]

    async def call(self, login: str, method: str, path: str, body: Json | None = None) -> Any:
        """Call the native API of the first process as a user."""
        async with web(self.stack.url) as client:
            headers = bearer(self.stack.tokens[login, "session"])
            response = await client.request(method, path, json=body, headers=headers)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def close(self) -> None:
        """Disconnect the agents and end the receiver; a second call does nothing."""
        await self.leave()
        if self._receiving is not None:
            await asyncio.to_thread(self._receiving.__exit__, None, None, None)
            self._receiving = None

    async def leave(self) -> None:
        """Disconnect the agents and the recipients of messages."""
        leaving = [one.stop() for some in (self.agents, self._venue_agents, self.teams) for one in some]
        await asyncio.gather(*leaving)

    def _agent(self, kind: type[AgentKind], owner: str, number: int) -> AgentKind:
        urls = self.stack.urls[number % len(self.stack.urls) :] + self.stack.urls[: number % len(self.stack.urls)]
        name = f"{kind.__name__}-{number}"
        agent = kind(urls, self.stack.tokens[owner, "channel"], self.log, name=name)
        agent.start()
        return agent

    async def _offer_venues(self, owner: str, number: int) -> BookingProgram:
        """Offer two venues, one with an agent, and make the key of a program that books at both."""
        agent = self._agent(VenueAgent, owner, number)
        self._venue_agents.append(agent)
        await asyncio.wait_for(agent.online.wait(), ONLINE_WITHIN_S)
        await self.publish(agent, owner, "venue", dailyBudgetQueries=WHOLE_DAY)
        for slug, handle in zip(VENUES, ("", f"@{agent.handle}"), strict=True):
            await self.call(owner, "POST", "/api/v1/network/venues", {"slug": slug, "name": slug, "agent": handle})
        wanted = {"name": "faults", "tier": "enterprise", "scope": "full", "customer": f"customer of {owner}"}
        made = await self.call(owner, "POST", "/api/v1/network/keys", wanted)
        self.stack.tokens[owner, "agnt"] = made["key"]
        self.stack.tokens[owner, "agnt secret"] = made["secret"]
        return BookingProgram(made["key"], VENUES, self.log)

    async def _subscribe(self, owner: str) -> None:
        self._receiving = receiving(self._hear)
        self.receiver = self._receiving.__enter__()
        made = await self.call(owner, "POST", "/api/v1/webhooks", {"url": self.receiver.url, "events": EVENTS})
        self._secret = self.stack.tokens[owner, "webhook secret"] = made["signingSecret"]

    def _hear(self, one: Received) -> int:
        """Answer a delivery, in the receiver's thread; note the delivery unless the answer refused it."""
        status = self.answer_webhook(one)
        try:
            body = Webhook(self._secret).verify(one.body, one.headers)
            is_signed = bool(body["eventId"] == one.headers["webhook-id"])
        except WebhookVerificationError:
            is_signed = False
        if status < 300:
            told = {"event_id": one.headers["webhook-id"], "type": json.loads(one.body).get("type")}
            digest = hashlib.sha256(one.body).hexdigest()
            self.log.write("webhook", **told, digest=digest, is_signed=is_signed)
        return status
