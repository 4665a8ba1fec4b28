"""Work that begins in several threads at once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """The results of functions that begin together, each on its own connection; the first failure is raised."""
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        try:
            barrier.wait(20)
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))
