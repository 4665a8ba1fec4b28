"""Callers who ask all the time while faults are done, by every kind of request and through every web process."""

import asyncio
import random
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field

import httpx

from lab.callers import ANSWER_WITHIN_S, web
from lab.faults import request_kinds
from lab.faults.agents import EchoAgent
from lab.faults.participants import Participants
from lab.faults.request_kinds import Answer, Question

KEYED_SHARE = 0.25
TWIN_SHARE = 0.04
READ_AGAIN_EVERY = 20  # tasks that ended
HOME_SHARE = 0.85  # how often a caller asks agents of its own neighbourhood: one agent serves one caller at a time
UNAVAILABLE = (-32013, 503)  # as JSON-RPC says it, and HTTP+JSON
AGAIN_AFTER_S = 0.5
AGAIN_WITHIN_S = 100.0  # the key of who died before it was admitted is free after 60
CONNECT_WITHIN_S = 30.0
NONE_FOR_S = 180.0
PAUSE_AFTER_FAILURE_S = 0.05
TIMEOUT = httpx.Timeout(ANSWER_WITHIN_S, connect=CONNECT_WITHIN_S)
UNLIMITED = httpx.Limits(max_connections=None, max_keepalive_connections=50)


@dataclass
class Load:
    """`loops` callers ask at any time; each is several logins in turn. Everything is written to the log."""

    participants: Participants
    loops: int
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _clients: list[httpx.AsyncClient] = field(default_factory=list)
    _with_task: int = 0
    _stopping: bool = False

    def start(self) -> None:
        """Ask until `stop`; again perhaps."""
        self._stopping = False
        self._clients = [web(url, limits=UNLIMITED) for url in self.participants.stack.urls]
        for client in self._clients:
            client.timeout = TIMEOUT
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._ask_on(number), name=f"caller {number}") for number in range(self.loops)
        ]

    async def stop(self) -> None:
        """Ask nothing more, wait for what was asked, and raise what ended a caller, if something did."""
        self._stopping = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            await client.aclose()
        self.check()

    def check(self) -> None:
        """Raise what ended a caller, if something did."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def reached(self, asks: int) -> None:
        """Wait until so many were logged in all.

        Raises:
            TimeoutError: for long none was.
        """
        seen, since = self.participants.log.asks, time.monotonic()
        while (now := self.participants.log.asks) < asks:
            self.check()
            if now > seen:
                seen, since = now, time.monotonic()
            if time.monotonic() > since + NONE_FOR_S:
                raise TimeoutError(f"no agent was asked for {NONE_FOR_S:.0f} s")
            await asyncio.sleep(0.05)

    async def ask_once(self, agent: EchoAgent, login: str, kind: str, url: int, *, key: str = "") -> Answer:
        """One ask of a fault's own, logged like any."""
        question = self._question(agent, login, key=key)
        return await self._send(question, kind, url, login, 0, by_load=False)

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

    async def _one(self, agent: EchoAgent, login: str) -> Answer:
        url = random.randrange(len(self._clients))
        dice = random.random()
        if dice < TWIN_SHARE:
            return await self._twins(agent, login)
        if dice < TWIN_SHARE + KEYED_SHARE:
            return await self._keyed(agent, login, url)
        kind = random.choices(list(request_kinds.WEIGHTS), list(request_kinds.WEIGHTS.values()))[0]
        question = self._question(agent, login)
        answer = await self._send(question, kind, url, login, 0)
        if answer.outcome == "unsent":  # as a proxy would: nothing left, so the next process is asked
            answer = await self._send(question, kind, (url + 1) % len(self._clients), login, 1)
        if answer.task_id and kind not in ("v0.3", "route"):
            self._with_task += 1
            if self._with_task % READ_AGAIN_EVERY == 1:
                await self._read_again(question, answer, login)
        return answer

    async def _keyed(self, agent: EchoAgent, login: str, url: int) -> Answer:
        """Ask under an Idempotency-Key, and go on asking, anywhere, until the task's end is told.

        A refusal that says nothing of coming back is final: of what was sent none is due. UNAVAILABLE says
        so by itself: an answer that was waited for has its status, 200, before its words.
        """
        question = self._question(agent, login, key=secrets.token_hex(12))
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

    async def _twins(self, agent: EchoAgent, login: str) -> Answer:
        """The same question twice at the same time, under one key, through all processes: one task."""
        question = self._question(agent, login, key=secrets.token_hex(12))
        kind = random.choice(request_kinds.KEYED)
        answers = await asyncio.gather(
            *(self._send(question, kind, url, login, url) for url in range(len(self._clients)))
        )
        return answers[0]

    async def _read_again(self, question: Question, answer: Answer, login: str) -> None:
        """The task says the same at another process, and nothing to another caller."""
        client = random.choice(self._clients)
        other = random.choice([one for one in self.participants.callers if one != login])
        with suppress(httpx.TransportError):
            stranger = Question(question.handle, self.participants.stack.tokens[other, "session"], "", "")
            seen = await request_kinds.get_task(client, stranger, answer.task_id)
            self._log_read("peek", question, answer.task_id, seen)
            if answer.outcome in ("completed", "failed"):
                seen = await request_kinds.get_task(client, question, answer.task_id)
                self._log_read("reread", question, answer.task_id, seen)

    def _log_read(self, op: str, question: Question, task_id: str, seen: Answer) -> None:
        self.participants.log.write(
            op, nonce=question.nonce, task_id=task_id, outcome=seen.outcome, text=seen.text[:200],
            status=seen.status, code=seen.code, retry_after=seen.retry_after,
        )  # fmt: skip

    def _question(self, agent: EchoAgent, login: str, *, key: str = "") -> Question:
        nonce = secrets.token_hex(8)
        token = self.participants.stack.tokens[login, "session"]
        return Question(agent.handle, token, f"{nonce} what did I say?", f"m-{nonce}", key)

    async def _send(
        self, question: Question, kind: str, url: int, login: str, attempt: int, *, by_load: bool = True
    ) -> Answer:
        began = time.monotonic()
        fault = self.participants.log.fault
        answer = await request_kinds.ask(self._clients[url], kind, question)
        self.participants.log.write(
            "ask", kind=kind, caller=login, agent=question.handle, url=url, message_id=question.message_id,
            nonce=question.nonce, keyed=bool(question.key), attempt=attempt,
            took_s=round(time.monotonic() - began, 3), status=answer.status, outcome=answer.outcome,
            text=answer.text[:200], task_id=answer.task_id, events=answer.events, retry_after=answer.retry_after,
            cuts=answer.cuts, began_in=fault, by_load=by_load,
        )  # fmt: skip
        for read in answer.reads:
            self._log_read("read", question, answer.task_id, read)
        return answer
