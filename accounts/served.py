"""Which credentials are being served at this moment, so that a revoked one can be cut off."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Served:
    """The answers of this process that wait for an agent, by the credential they were asked with."""

    def __init__(self) -> None:
        self._open: dict[int, set[asyncio.Task[Any]]] = {}
        self._cut_off: set[asyncio.Task[Any]] = set()

    @property
    def credential_ids(self) -> set[int]:
        """Whose answers are open."""
        return set(self._open)

    def dismiss(self, credential_ids: set[int]) -> None:
        """Cut off what these still hold open. Their turns go on, and are settled as ever."""
        for credential_id in credential_ids:
            for task in self._open.get(credential_id, ()):
                self._cut_off.add(task)
                task.cancel()

    async def serve(self, credential_id: int, answer: Coroutine[Any, Any, None]) -> bool:
        """Run an answer to its end; False when it was cut off. Lighter than a timeout scope, on every ask."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  for the type checker: a coroutine runs in a task
        self._open.setdefault(credential_id, set()).add(task)
        try:
            await answer
        except asyncio.CancelledError:
            if task not in self._cut_off:
                raise
            task.uncancel()
            return False
        finally:
            self._leave(credential_id, task)
        return True

    def _leave(self, credential_id: int, task: asyncio.Task[Any]) -> None:
        self._cut_off.discard(task)
        held = self._open[credential_id]
        held.discard(task)
        if not held:
            del self._open[credential_id]
