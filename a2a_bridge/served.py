"""Which credentials are being served at this moment, so that a revoked one can be cut off."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Served:
    """The answers of this process that wait for an agent, by the credential they were asked with."""

    def __init__(self) -> None:
        self._open: dict[int, set[asyncio.Timeout]] = {}

    @property
    def credential_ids(self) -> set[int]:
        """Whose answers are open."""
        return set(self._open)

    def dismiss(self, credential_ids: set[int]) -> None:
        """Cut off what these still hold open. Their turns go on, and are settled as ever."""
        for credential_id in credential_ids:
            for scope in self._open.get(credential_id, ()):
                scope.reschedule(0)

    async def serve(self, credential_id: int, answer: Coroutine[Any, Any, None]) -> bool:
        """Run an answer to its end; False when it was cut off."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._open.setdefault(credential_id, set()).add(scope)
                await answer
        except TimeoutError:
            if not scope.expired():
                raise
            return False
        finally:
            held = self._open[credential_id]
            held.discard(scope)
            if not held:
                del self._open[credential_id]
        return True
