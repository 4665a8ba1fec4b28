"""The only bridge from a coroutine to Django's synchronous database work."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async

P = ParamSpec("P")
R = TypeVar("R")


def db_call(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Wrap one whole synchronous function so that it runs in a pool thread.

    The default thread is shared by every socket of the process: one slow query there stalls them all
    (docs/adr/0003). The pool thread closes stale connections itself.
    """
    wrapped: Callable[P, Awaitable[R]] = database_sync_to_async(function, thread_sensitive=False)
    return wrapped
