"""F15: a rolling restart of all web processes."""

import time

from lab.faults.fault import Fault, Scene

GONE_WITHIN_S = 25.0
ASKS_BETWEEN = 60


async def rolling_restart(scene: Scene) -> None:
    """SIGTERM, wait for the drain, start again; one process after the other, while all is asked."""
    for _ in range(scene.count):
        for url in range(len(scene.stack.urls)):
            began = time.monotonic()
            scene.stack.terminate_web(url)
            code = await scene.stack.web_exited(url, "SIGTERM", within_s=2 * GONE_WITHIN_S)
            took_s = time.monotonic() - began
            ok = code == 0 and took_s <= GONE_WITHIN_S
            scene.saw("a drained process leaves with 0 within 25 s", ok, f"{code} after {took_s:.1f} s")
            await scene.stack.serve(url)
            await scene.asked(ASKS_BETWEEN)


FAULTS = [Fault("F15", "rolling restart", 1, 30, rolling_restart)]
