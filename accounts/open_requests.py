"""The open requests of this process by credential, and its sockets without a token by address."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from accounts.authn import Unauthenticated
from kit.asgi import Scope
from kit.concurrency import ConcurrencyLimit, TooManyAtOnce, network_of


class OpenRequest(Protocol):
    """A request that waits: a task, or what answers without one."""

    def cancel(self) -> object:
        """Stop waiting, because the credential was revoked."""


class OpenRequests:
    """The requests of this process that wait for an agent, by credential.

    A task registers by `hold`; asks of A2A call `enter` or `add`, and `leave`, which cost less.
    """

    def __init__(self) -> None:
        self._open: dict[int, set[OpenRequest]] = {}
        self._cut_off: set[OpenRequest] = set()

    @property
    def credential_ids(self) -> set[int]:
        """The ids of the credentials with open requests."""
        return set(self._open)

    def dismiss(self, credential_ids: set[int]) -> None:
        """Cancel the open requests of these credentials. Their turns continue, and are settled as usual."""
        for credential_id in credential_ids:
            for request in tuple(self._open.get(credential_id, ())):
                self._cut_off.add(request)
                request.cancel()

    @contextmanager
    def hold(self, credential_id: int) -> Iterator[None]:
        """Register the current task as a request of the credential for the block.

        Raises:
            Unauthenticated: the credential was revoked meanwhile.
        """
        task = self.enter(credential_id)
        try:
            yield
        except asyncio.CancelledError:
            if self.was_dismissed(task):
                raise Unauthenticated from None
            raise
        finally:
            self.leave(credential_id, task)

    def enter(self, credential_id: int) -> asyncio.Task[Any]:
        """Register the current task as a request of the credential, until `leave`; returns the task."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  for the type checker: answers run in tasks
        self.add(credential_id, task)
        return task

    def add(self, credential_id: int, request: OpenRequest) -> None:
        """Register a request of the credential, until `leave`."""
        self._open.setdefault(credential_id, set()).add(request)

    def was_dismissed(self, task: asyncio.Task[Any]) -> bool:
        """True if `dismiss` cancelled the task; then this call revokes the cancellation."""
        if task not in self._cut_off:
            return False
        # The task goes on to respond: its count of cancellations, which
        # `asyncio.timeout` reads, must be right.
        task.uncancel()
        return True

    def leave(self, credential_id: int, request: OpenRequest) -> None:
        """Remove a request that has ended."""
        self._cut_off.discard(request)
        held = self._open[credential_id]
        held.discard(request)
        if not held:
            del self._open[credential_id]


PER_ADDRESS = 100  # a waiting socket takes memory, which clients without an account must not use without a limit


class UnsignedSockets:
    """Counts the sockets of each address that wait for a token, at most `per_address` in this process.

    Behind a trusted proxy the address is the one that the proxy names. A socket enters if its upgrade names no
    token, and leaves when a token comes or the socket closes.
    """

    def __init__(self, per_address: int = PER_ADDRESS) -> None:
        self._addresses: dict[object, str] = {}
        self._open = ConcurrencyLimit("sockets without a token", per_account=per_address)

    def enter(self, socket: object, scope: Scope) -> bool:
        """Count a socket; False when its address has `per_address` already. A second call does nothing."""
        if socket in self._addresses:
            return True
        client = scope.get("client")
        address = network_of(str(client[0]) if client else "")
        try:
            self._open.enter(address)
        except TooManyAtOnce:
            return False
        self._addresses[socket] = address
        return True

    def leave(self, socket: object) -> None:
        """Stop counting a socket, which has signed in or closed. A second call does nothing."""
        if socket in self._addresses:
            self._open.leave(self._addresses.pop(socket))
