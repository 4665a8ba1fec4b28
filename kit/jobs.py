"""The jobs of the hub, by name. An embedded hub runs them in a thread, other hubs in a Celery worker."""

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

JOBS: dict[str, Callable[..., object]] = {}


def job(name: str) -> Callable[[F], F]:
    """Register a function as the job of this name, in an app's `jobs.py`; `hub.settings` has the names."""

    def register(function: F) -> F:
        JOBS[name] = function
        return function

    return register
