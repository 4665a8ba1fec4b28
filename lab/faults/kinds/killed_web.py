"""F1: kill -9 of a web process at each of six points of a turn."""

import random

from lab.faults.fault import Fault, Scene

POINTS = (
    "after-admission",
    "after-delivery",
    "first-chunk",
    "before-settling",
    "after-settling",
    "while-draining",
)
DIES_WITHIN_S = 60
ASKS_BETWEEN = 40
DRAINS = 5


async def kill_at_points(scene: Scene) -> None:
    """Each round a web process is started so that it dies at a point, and started again when it did."""
    first = random.randrange(len(POINTS) * len(scene.stack.urls))
    for number in range(first, first + scene.count):
        point, url = POINTS[number % len(POINTS)], (number // len(POINTS)) % len(scene.stack.urls)
        for _ in range(DRAINS):
            code = await _kill_at(scene, point, url)
            if code != 0:
                break  # else no turn was open: nothing to drain, so nothing was done
        scene.saw(f"a process died {point}", code == -9, f"left with {code}")
        await scene.asked(ASKS_BETWEEN // 2)
    await _serve_all(scene)


async def _kill_at(scene: Scene, point: str, url: int) -> int:
    """With what the process left; 0 when it was told to drain and had nothing to."""
    await _serve_all(scene, but=url)
    if scene.stack.web[url] is not None:
        await scene.stack.kill_web(url)
    is_drain = point == "while-draining"
    await scene.stack.serve(url, FAIL_POINTS=f"{point}:{1 if is_drain else random.randint(1, 20)}")
    await scene.asked(ASKS_BETWEEN // 2)
    if is_drain:
        scene.stack.terminate_web(url)
    return await scene.stack.web_exited(url, f"kill -9 {point}", within_s=DIES_WITHIN_S)


async def _serve_all(scene: Scene, but: int = -1) -> None:
    """Start what is not running."""
    for url, program in enumerate(scene.stack.web):
        if program is None and url != but:
            await scene.stack.serve(url)


FAULTS = [Fault("F1", "kill -9 of a web process at six points of a turn", 6, 300, kill_at_points)]
