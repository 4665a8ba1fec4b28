"""Whose request a thread serves next: threads and the processor are shared by accounts, not by requests.

An account has one thread at once, the slices of long answers included, because threads that compute delay each
other and the event loop. While it uses much of the processor, the thread is nicer than others. An account that
used still more waits until its share has made up for most of it. A request that waits for another server leaves
its thread to the next one. The further requests of an account wait here, without a thread; a request whose client
left meanwhile is not served.

A token is known once a request with it was served. Until then, and without a token, requests are counted by the
address of their client, which many users may share.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from time import thread_time
from typing import Any, NamedTuple, ParamSpec, TypeVar

from accounts.authn import presented
from hub.limits import REQUESTS
from kit.asgi import RETRY_SOON, ClientLeft, Message, Receive, RequestRefused, Scope, headers_of
from kit.async_db import busy_request_call, request_call
from kit.concurrency import network_of
from kit.newest import NewestEntries

P = ParamSpec("P")
R = TypeVar("R")

SHARE = 0.5  # of a core, where no limit is set: an account that uses no more is never busy
# Processor seconds beyond the share: from the first number on an account is busy, from the second on it waits; no
# more than the third are counted.
BUSY_S, OVERUSED_S, MOST_USED_S = 0.02, 0.1, 5.0
TOKENS_KNOWN, ACCOUNTS_KNOWN = 20_000, 10_000
TOO_MANY = "{most} of your requests are under way: send further ones once some were answered"


class Share(NamedTuple):
    """The part of the threads for one account. `waiting`: the most requests under way, with those that wait.

    `is_of_account`: False for an address, which many users may share.
    """

    threads: int
    threads_while_busy: int
    waiting: int
    is_of_account: bool = False


OF_ACCOUNT = Share(1, 1, REQUESTS.most, is_of_account=True)
OF_NEW_TOKENS = Share(2, 1, 1_000)  # of all unknown tokens of one address
OF_ADDRESS = Share(20, 4, 1_000)  # without a token


@dataclass(slots=True, eq=False)
class AccountTurns:
    """The requests of one account. `used_s`: its processor time beyond its share, as of `counted_at`."""

    share: Share
    counted_at: float
    used_s: float = 0.0
    running: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class RequestTurn:
    """A request that is being served. `digest`: of its token; empty without one. `has_thread`: counted as such.

    `is_busy`: the account used much of the processor, and others go first.
    """

    account: AccountTurns
    digest: str = ""
    has_thread: bool = True
    is_busy: bool = False

    def in_thread(self, function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
        """Wrap a synchronous function of the request so that it runs in a thread."""
        return (busy_request_call if self.is_busy else request_call)(function)


class RequestTurns:
    """Gives requests their turns; used in the event loop alone."""

    def __init__(self, share_percent: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        """`share_percent`: of a core, for each account in the long run; 0: no limit."""
        self._is_limited = share_percent > 0
        self._a_second = share_percent / 100 or SHARE
        self._clock = clock
        self._accounts = NewestEntries[Hashable, AccountTurns](ACCOUNTS_KNOWN)
        self._users = NewestEntries[str, int](TOKENS_KNOWN)

    async def begin(self, scope: Scope, receive: Receive) -> RequestTurn:
        """Wait for the turn of a request whose body was read.

        Raises:
            RequestRefused: too many requests of the account are under way.
            ClientLeft: the client disconnected meanwhile.
        """
        token = presented(headers_of(scope))
        digest = token.digest if token else ""
        client = scope.get("client")
        network = network_of(client[0] if client else "")
        user_id = self._users.get(digest)
        if is_new := user_id is None:
            account = self._find_or_add((network, bool(digest)), OF_NEW_TOKENS if digest else OF_ADDRESS)
            await self._begin(account, receive)
            if (user_id := self._users.get(digest)) is None:
                return self._turn(account, digest)
            self._release(account)  # another request with the token was served: this one waits for the account
        account = self._find_or_add(user_id, OF_ACCOUNT)
        await self._begin(account, receive, has_waited=is_new)
        return self._turn(account, digest)

    def end(self, turn: RequestTurn, spent_s: float = 0.0, user_id: int | None = None) -> None:
        """Count a request that was served. `spent_s`: processor time; `user_id`: of its token, if valid."""
        account = turn.account
        account.used_s = min(self._used_s(account) + spent_s, MOST_USED_S)
        account.counted_at = self._clock()
        if user_id is not None and turn.digest:
            self._users[turn.digest] = user_id
        self.release(turn)

    def release(self, turn: RequestTurn) -> None:
        """Leave the thread of a request to the next one, before its end or then."""
        if turn.has_thread:
            turn.has_thread = False
            self._release(turn.account)

    async def call(
        self, account_id: int, receive: Receive, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """See `kit.async_db.AccountCall`."""

        def timed() -> tuple[R, float]:
            began_s = thread_time()
            return function(*args, **kwargs), thread_time() - began_s

        account = self._find_or_add(account_id, OF_ACCOUNT)
        await self._begin(account, receive)
        turn = self._turn(account)
        return await self._timed(turn, turn.in_thread(timed))

    async def read_slice(self, turn: RequestTurn, read: Callable[[], Awaitable[tuple[R, float]]]) -> R:
        """See `kit.async_db.SliceCall`. `turn`: of the request that is answered; it has ended."""
        user_id = self._users.get(turn.digest)
        account = turn.account if user_id is None else self._find_or_add(user_id, OF_ACCOUNT)
        await self._begin(account, _stay, has_waited=True)
        return await self._timed(self._turn(account), read)

    async def _timed(self, turn: RequestTurn, call: Callable[[], Awaitable[tuple[R, float]]]) -> R:
        """Await a call in a turn. If its client leaves, the turn lasts until the thread has ended the call."""
        running = asyncio.ensure_future(call())
        running.add_done_callback(partial(self._end_timed, turn))
        return (await asyncio.shield(running))[0]

    def _end_timed(self, turn: RequestTurn, running: asyncio.Future[tuple[Any, float]]) -> None:
        has_failed = running.cancelled() or running.exception() is not None
        self.end(turn, 0.0 if has_failed else running.result()[1])

    def _turn(self, account: AccountTurns, digest: str = "") -> RequestTurn:
        return RequestTurn(account, digest, is_busy=self._used_s(account) >= BUSY_S)

    async def _begin(self, account: AccountTurns, receive: Receive, *, has_waited: bool = False) -> None:
        """Wait for a turn of an account. `has_waited`: the request was accepted before, and is not refused."""
        if account.running < self._at_once(account):
            account.running += 1
        elif has_waited or account.running + len(account.waiting) < account.share.waiting:
            await self._wait(account, receive)
        else:
            raise RequestRefused(429, "rate_limited", TOO_MANY.format(most=account.share.waiting), RETRY_SOON)

    def _find_or_add(self, key: Hashable, share: Share) -> AccountTurns:
        account = self._accounts.get(key)
        if account is None:
            account = AccountTurns(share, self._clock())
        self._accounts[key] = account  # the newest entry again
        return account

    async def _wait(self, account: AccountTurns, receive: Receive) -> None:
        """Wait until `_release` counts this request as running."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        account.waiting.append(turn)
        self._serve_waiting(account)
        left = asyncio.ensure_future(receive())  # only a disconnect is still to come
        try:
            await asyncio.wait((turn, left), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if turn.done():
                self._release(account)
            raise
        finally:
            left.cancel()
            if not turn.done():
                account.waiting.remove(turn)
        if not turn.done():
            raise ClientLeft

    def _release(self, account: AccountTurns) -> None:
        """Give a thread back, and those that are free to the requests that waited longest."""
        account.running -= 1
        self._serve_waiting(account)

    def _serve_waiting(self, account: AccountTurns) -> None:
        if account.timer is not None:
            account.timer.cancel()
            account.timer = None
        while account.waiting and account.running < self._at_once(account):
            account.running += 1
            account.waiting.popleft().set_result(None)
        if account.waiting and not account.running:
            again_s = (self._used_s(account) - OVERUSED_S) / self._a_second
            account.timer = asyncio.get_running_loop().call_later(again_s, self._serve_waiting, account)

    def _at_once(self, account: AccountTurns) -> int:
        used_s, share = self._used_s(account), account.share
        if self._is_limited and share.is_of_account and used_s > OVERUSED_S:
            return 0
        return share.threads_while_busy if used_s >= BUSY_S else share.threads

    def _used_s(self, account: AccountTurns) -> float:
        return max(0.0, account.used_s - (self._clock() - account.counted_at) * self._a_second)


async def _stay() -> Message:
    """The client of a long answer: when it leaves, the task that sends the answer is cancelled."""
    return await asyncio.Future[Message]()
