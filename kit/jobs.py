"""The jobs of the hub, by name: a thread of the embedded hub runs them, elsewhere Celery's worker does."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

JOBS: dict[str, Callable[..., object]] = {}


def job(name: str) -> Callable[[F], F]:
    """Register a function as the job of this name. Each app's `jobs.py` does, as `hub.settings` names them."""

    def register(function: F) -> F:
        JOBS[name] = function
        return function

    return register
