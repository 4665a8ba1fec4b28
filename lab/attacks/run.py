"""Runs attacks on an embedded hub, while honest callers ask agents and read at a slow, steady rate."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import in_django
from lab.attacks.attacker import BEGUN
from lab.attacks.kinds import KINDS
from lab.attacks.outcome import AttackOutcome, Phase
from lab.bench import hubs
from lab.bench.client import BenchCaller, question_template, request
from lab.bench.hubs import AGENTS_PATH
from lab.bench.load import AskedServer, LoadRun, measure_servers
from lab.bench.meter import LOAD_CORE, SERVER_CORES
from lab.hub_process import HubProcess
from lab.processes import Program, ProgramError, printed, python

HONEST = 30  # users, each with an agent that another one asks
RATE = 10.0  # asks a second of all of them, which each one's rate limit allows, and as many reads
CONNECTIONS = 6
WARM_UP_S = 2.0
TRIES = 3  # of an attack that seemed to starve others: another program may have been busy meanwhile
FREED_WITHIN_S, LOOKS_EVERY_S = 60.0, 2.0
FULL = "reader-0"  # the account at its limits
FULL_KINDS = ("exports_unread", "searches", "markdown", "pages", "full_account")
SETTINGS: dict[str, Any] = {
    "CALLER_RATE_PER_MINUTE": None,
    "ACCOUNT_SHARE_PERCENT": None,
    "SOCKET_BYTES_PER_SECOND": None,
    "WEBHOOK_ALLOW_PRIVATE": "1",
    "REMOTE_ALLOW_PRIVATE": "1",
    "TEST_TIME_SCALE": "1",
    "DRAIN_S": "1",
}  # the limits are those of every hub; slow receivers and servers are on this machine

Say = Callable[[str], None]


@dataclass(frozen=True)
class Reads:
    """Requests by which a caller reads the list of its sessions."""

    token: str
    answered: str = '"items"'

    def fill(self, number: int) -> bytes:
        """The bytes of a request; all are the same."""
        return request("GET", "/api/v1/sessions?limit=5", f"Authorization: Bearer {self.token}\r\n")


@dataclass(frozen=True)
class Stand:
    """A hub, its honest callers, and what the attacker knows. `attacked`: asks an agent that no honest caller
    asks, as its budget and its queue are shared by all who may ask it.
    """

    hub: HubProcess
    callers: Sequence[BenchCaller]
    attacked: BenchCaller
    thread: str
    folder: Path

    @property
    def port(self) -> int:
        """The hub's port."""
        return int(self.hub.url.rpartition(":")[2])

    @property
    def rss_mib(self) -> float:
        """The hub's resident memory."""
        return self.hub.programs[0].rss_kib() / 1024

    def look(self, seconds: float) -> Phase:
        """Let the honest callers ask and read for some seconds."""
        asks = [AskedServer(self.port, [question_template(one, "SendMessage") for one in self.callers])]
        reads = [AskedServer(self.port, [Reads(one.token) for one in self.callers])]
        with ThreadPoolExecutor(2) as both:
            asked, read = both.map(lambda asked: self._measure(asked, seconds), (asks, reads))
        return Phase(asked, read, self.rss_mib)

    def attack(self, kind: str, seconds: float) -> AttackOutcome:
        """Attack in a process of its own; measure before, meanwhile and after."""
        before_mib, quiet = self.rss_mib, self.look(seconds)
        with self._attacker(kind, seconds) as attacker:
            during = self.look(seconds)
            if attacker.exit_code(within_s=FREED_WITHIN_S):
                raise ProgramError(f"the attacker failed:\n{attacker.output}")
            counted = json.loads(attacker.lines[-1])
        after = self.look(seconds)
        until = time.monotonic() + FREED_WITHIN_S - seconds
        outcome = AttackOutcome(KINDS[kind].__doc__ or kind, before_mib, quiet, during, after, counted["ends"])
        while outcome.has_grown and time.monotonic() < until:
            time.sleep(LOOKS_EVERY_S)
            outcome = outcome.with_rss(self.rss_mib)
        return outcome

    def _measure(self, asked: list[AskedServer], seconds: float) -> LoadRun:
        return measure_servers("honest", self.hub.programs, asked, CONNECTIONS, seconds, rate=RATE)

    def _attacker(self, kind: str, seconds: float) -> Program:
        login = FULL if kind in FULL_KINDS else f"attacker-{kind}-{time.monotonic_ns()}"
        tokens = {of: self.hub.mint(login, of) for of in ("session", "channel")}
        known: dict[str, object] = {f"{of}_token": token for of, token in tokens.items()}
        known |= {
            "port": self.port,
            "thread": self.thread,
            "handle": self.attacked.path.removeprefix(AGENTS_PATH),
        }
        command = python("-m", "lab.attacks.attacker", kind, str(seconds))
        return Program(
            command,
            self.folder / f"attacker-{kind}.log",
            core=LOAD_CORE,
            stdin=json.dumps(known),
            is_ready=printed(BEGUN),
        )


@contextmanager
def standing(folder: Path) -> Iterator[Stand]:
    """A hub with honest users, whose agents are online, and with an account at its limits."""
    with hubs.storages("embedded", folder) as new_storage:
        storage = new_storage()
        users = hubs.seed(storage, HONEST + 1)
        thread = in_django.call(storage.env, "lab.attacks.full_account:seed", FULL)
        with HubProcess.start(storage, cores=SERVER_CORES, **SETTINGS) as hub:
            *callers, attacked = [hubs.caller_of(one, "1.0") for one in users]
            stand = Stand(hub, callers, attacked, thread, folder)
            with hubs.agents(stand.port, users, folder):
                stand.look(WARM_UP_S)
                yield stand


def run_attacks(
    kinds: Sequence[str],
    folder: Path,
    seconds: float,
    say: Say,
    *,
    tries: int = TRIES,
    minutes: float = float("inf"),
) -> list[AttackOutcome]:
    """The outcome of each attack: the best of some tries, as long as it seems to starve others.

    `minutes`: after these, no attack is tried again, and no further kind begins.
    """
    outcomes, until = [], time.monotonic() + minutes * 60
    with standing(folder) as stand:
        for kind in kinds:
            if time.monotonic() > until:
                say(f"{kind} and what follows: left out, {minutes:g} minutes are over")
                break
            outcome = stand.attack(kind, seconds)
            for _ in range(tries - 1):
                if not outcome.flaws or time.monotonic() > until:
                    break
                say(f"{kind}, once more: {'; '.join(outcome.flaws)}")
                outcome = min(outcome, stand.attack(kind, seconds), key=lambda one: len(one.flaws))
            say(f"{kind}: {'; '.join(outcome.flaws) or 'no caller starved'}")
            outcomes.append(outcome)
    return outcomes
