"""Callers during faults, over every surface and through every web process: asks, bookings, queued messages."""

import asyncio
import random
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from lab.callers import ANSWER_WITHIN_S, Json, web
from lab.faults import request_kinds
from lab.faults.agents import EchoAgent
from lab.faults.bookings import BookingProgram
from lab.faults.participants import Participants
from lab.faults.requests import AskAnswer, LoadRequest

KEYED_SHARE = 0.25
TWIN_SHARE = 0.04
READ_AGAIN_EVERY = 20  # tasks that ended
ROLES = 8  # of so many callers one books at venues, and one sends messages to agents that are away
BOOKS, SENDS = 2, 3
HOME_SHARE = 0.85  # how often a caller asks agents of its own neighbourhood: one agent serves one caller at a time
UNAVAILABLE = (-32013, 503)  # as JSON-RPC says it, and HTTP+JSON
AGAIN_AFTER_S = 0.5
AGAIN_WITHIN_S = 100.0  # the key of an ask whose process died before admission is free after 60
CONNECT_WITHIN_S = 30.0
NONE_FOR_S = 180.0
PAUSE_AFTER_FAILURE_S = 0.05
TIMEOUT = httpx.Timeout(ANSWER_WITHIN_S, connect=CONNECT_WITHIN_S)
UNLIMITED = httpx.Limits(max_connections=None, max_keepalive_connections=50)


@dataclass
class Load:
    """`loops` callers at any time: most ask, each by several logins in turn. Every ask is written to the log."""

    participants: Participants
    loops: int
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _clients: list[httpx.AsyncClient] = field(default_factory=list)
    _with_task: int = 0
    _stopping: bool = False

    def start(self) -> None:
        """Begin to ask; also after `stop`."""
        self._stopping = False
        self._clients = [web(url, limits=UNLIMITED) for url in self.participants.stack.urls]
        for client in self._clients:
            client.timeout = TIMEOUT
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._work_on(number), name=f"caller {number}") for number in range(self.loops)
        ]

    async def stop(self) -> None:
        """Begin no further ask, and wait for the last answers. Raises the exception that ended a caller."""
        self._stopping = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            await client.aclose()
        self.check()

    def check(self) -> None:
        """Raise the exception that ended a caller, if there is one."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def reached(self, asks: int) -> None:
        """Wait until so many asks were logged in all.

        Raises:
            TimeoutError: no ask was logged for NONE_FOR_S.
        """
        seen, since = self.participants.log.asks, time.monotonic()
        while (now := self.participants.log.asks) < asks:
            self.check()
            if now > seen:
                seen, since = now, time.monotonic()
            if time.monotonic() > since + NONE_FOR_S:
                raise TimeoutError(f"no agent was asked for {NONE_FOR_S:.0f} s")
            await asyncio.sleep(0.05)

    async def ask_once(self, agent: EchoAgent, login: str, kind: str, url: int, *, key: str = "") -> AskAnswer:
        """Make one ask for a fault; logged like those of the load."""
        question = self.question(agent, login, key=key)
        return await self._send(question, kind, url, login, 0, by_load=False)

    async def ask_keyed(self, agent: EchoAgent, login: str, url: int) -> AskAnswer:
        """Ask under an Idempotency-Key, again and through any process, until the caller has the end of the task.

        `url`: the number of the first process. A refusal is final unless it invites a repetition. The codes
        UNAVAILABLE do so also with status 200, which the hub sends before it knows the outcome.
        """
        question = self.question(agent, login, key=secrets.token_hex(12))
        kind = random.choice(request_kinds.KEYED)
        until = time.monotonic() + AGAIN_WITHIN_S
        attempt = 0
        while True:
            answer = await self._send(question, kind, (url + attempt) % len(self._clients), login, attempt)
            is_error = answer.outcome == "refused" and answer.status < 500 and answer.code not in UNAVAILABLE
            if answer.outcome in ("completed", "failed") or is_error or time.monotonic() > until:
                break
            attempt += 1
            await asyncio.sleep(AGAIN_AFTER_S)
        said = {"outcome": answer.outcome, "status": answer.status, "text": answer.text[:200]}
        self.participants.log.write("keyed", nonce=question.nonce, kind=kind, attempts=attempt + 1, **said)
        return answer

    async def book_once(self, program: BookingProgram, url: int) -> None:
        """Confirm one booking, first at the process of that number, until the confirmation is answered."""
        await program.book(self._clients, url)

    def set_wait(self, url: int, within_s: float = ANSWER_WITHIN_S) -> None:
        """Set how long later requests wait for an answer of that process. Those over sockets wait as usual."""
        self._clients[url].timeout = httpx.Timeout(within_s, connect=min(within_s, CONNECT_WITHIN_S))

    async def _work_on(self, number: int) -> None:
        people, turn = self.participants, number // ROLES
        if number % ROLES == BOOKS:
            await people.programs[turn % len(people.programs)].book_on(self._clients, self._goes_on)
        elif number % ROLES == SENDS:
            await people.teams[turn % len(people.teams)].send_on(self._goes_on)
        else:
            await self._ask_on(number)

    def _goes_on(self) -> bool:
        return not self._stopping

    async def _ask_on(self, number: int) -> None:
        callers = self.participants.callers[number :: self.loops]
        agents = self.participants.agents
        home = agents[number :: self.loops] or agents
        turn = 0
        while not self._stopping:
            turn += 1
            agent = random.choice(home if random.random() < HOME_SHARE else agents)
            login = callers[turn % len(callers)]
            answer = await self._one(agent, login)
            if answer.outcome in ("broken", "refused", "unsent"):
                await asyncio.sleep(PAUSE_AFTER_FAILURE_S)  # a fault must not cause a storm of refusals

    async def _one(self, agent: EchoAgent, login: str) -> AskAnswer:
        url = random.randrange(len(self._clients))
        dice = random.random()
        if dice < TWIN_SHARE:
            return await self._twins(agent, login)
        if dice < TWIN_SHARE + KEYED_SHARE:
            return await self.ask_keyed(agent, login, url)
        kind = random.choices(list(request_kinds.WEIGHTS), list(request_kinds.WEIGHTS.values()))[0]
        question = self.question(agent, login)
        answer = await self._send(question, kind, url, login, 0)
        if answer.outcome == "unsent":  # as a proxy would: nothing left, so the next process is asked
            answer = await self._send(question, kind, (url + 1) % len(self._clients), login, 1)
        if answer.task_id and kind not in request_kinds.WITHOUT_TASK_ID:
            self._with_task += 1
            if self._with_task % READ_AGAIN_EVERY == 1:
                await self._read_again(question, answer, login)
        return answer

    async def _twins(self, agent: EchoAgent, login: str) -> AskAnswer:
        """Send one question under one key through all processes at the same time; the hub must make one task."""
        question = self.question(agent, login, key=secrets.token_hex(12))
        kind = random.choice(request_kinds.KEYED)
        answers = await asyncio.gather(
            *(self._send(question, kind, url, login, url) for url in range(len(self._clients)))
        )
        return answers[0]

    async def _read_again(self, question: LoadRequest, answer: AskAnswer, login: str) -> None:
        """Read a task through any process, as its caller and as another caller."""
        client = random.choice(self._clients)
        other = random.choice([one for one in self.participants.callers if one != login])
        with suppress(httpx.TransportError):
            stranger = LoadRequest(question.handle, self.participants.stack.tokens[other, "session"], "", "")
            seen = await request_kinds.get_task(client, stranger, answer.task_id)
            self._log_read("peek", question, answer.task_id, seen)
            if answer.outcome in ("completed", "failed"):
                seen = await request_kinds.get_task(client, question, answer.task_id)
                self._log_read("reread", question, answer.task_id, seen)

    def _log_read(self, op: str, question: LoadRequest, task_id: str, seen: AskAnswer) -> None:
        self.participants.log.write(
            op, nonce=question.nonce, task_id=task_id, outcome=seen.outcome, text=seen.text[:200],
            status=seen.status, code=seen.code, retry_after=seen.retry_after,
        )  # fmt: skip

    def question(self, agent: EchoAgent, login: str, *, key: str = "") -> LoadRequest:
        """A question to an agent, with a nonce of its own."""
        nonce = secrets.token_hex(8)
        token = self.participants.stack.tokens[login, "session"]
        return LoadRequest(agent.handle, token, f"{nonce} what did I say?", f"m-{nonce}", key)

    async def _send(
        self, question: LoadRequest, kind: str, url: int, login: str, attempt: int, *, by_load: bool = True
    ) -> AskAnswer:
        about = {
            "kind": kind,
            "caller": login,
            "url": url,
            "attempt": attempt,
            "began_in": self.participants.log.fault,
            "by_load": by_load,
        }
        began, answer = time.monotonic(), AskAnswer("broken", text="cancelled")
        try:
            answer = await request_kinds.ask(self._clients[url], kind, question)
        finally:  # the hub may have a row of an ask that a fault cancelled, too
            answer.took_s = time.monotonic() - began
            self.log_ask(question, answer, about)
        for read in answer.reads:
            self._log_read("read", question, answer.task_id, read)
        return answer

    def log_by_hand(self, question: LoadRequest, login: str, task_id: str) -> None:
        """Log an ask that a fault made by itself, and whose reply is no echo: only its row in the audit is due."""
        about = {
            "kind": "by hand",
            "caller": login,
            "url": 0,
            "attempt": 0,
            "began_in": self.participants.log.fault,
        }
        self.log_ask(question, AskAnswer("broken", 200, task_id=task_id), about)

    def log_ask(self, question: LoadRequest, answer: AskAnswer, about: Json) -> None:
        """Log an ask and its answer. `about`: the further fields of the line (see `oplog`)."""
        self.participants.log.write(
            "ask", agent=question.handle, message_id=question.message_id, nonce=question.nonce,
            keyed=bool(question.key), took_s=round(answer.took_s, 3), status=answer.status,
            outcome=answer.outcome, text=answer.text[:200], task_id=answer.task_id, events=answer.events,
            retry_after=answer.retry_after, cuts=answer.cuts, **about,
        )  # fmt: skip
