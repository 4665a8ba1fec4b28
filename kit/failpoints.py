"""Named points at which a process can be made to kill itself, for the fault suite.

`FAIL_POINTS=after-admission:3` kills the process (SIGKILL, so nothing is cleaned up) the third time it reaches the
point. Several points are separated by commas. The names are the arguments of `reach`, wherever it is called.
Without `FAIL_POINTS`, `reach` is None, so it is called by `if reach: reach("after-admission")`.
"""

import os
import signal
import sys
from collections.abc import Callable


def _read(points: str) -> dict[str, int]:
    """The number of times that each point may still be reached before it kills the process."""
    pairs = (point.strip().partition(":") for point in points.split(",") if point.strip())
    return {name: int(nth or 1) for name, _, nth in pairs}


def armed(points: str) -> Callable[[str], None]:
    """A `reach` that kills the process as `points` says."""
    left = _read(points)

    def reach(name: str) -> None:
        if name in left:
            left[name] -= 1
            if left[name] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _chosen() -> Callable[[str], None] | None:
    points = os.environ.get("FAIL_POINTS", "")
    if not points:
        return None
    sys.stderr.write(f"FAIL_POINTS={points}: this process will kill itself\n")
    return armed(points)


reach = _chosen()
