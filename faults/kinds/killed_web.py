"""F1: kill -9 of a web process at each of six points of a turn."""

import random

from faults.fault import Fault, Scene

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


async def kill_at_points(scene: Scene) -> None:
    """Each round a web process is started so that it dies at a point, and started again when it did."""
    for number in range(scene.count):
        point, url = POINTS[number % len(POINTS)], (number // len(POINTS)) % len(scene.stack.urls)
        if scene.stack.web[url] is not None:
            await scene.stack.kill_web(url)
        await scene.stack.serve(url, FAIL_POINTS=f"{point}:{random.randint(1, 20)}")
        await scene.asked(ASKS_BETWEEN // 2)
        if point == "while-draining":
            scene.stack.terminate_web(url)
        code = await scene.stack.web_exited(url, f"kill -9 {point}", within_s=DIES_WITHIN_S)
        scene.saw(f"a process died {point}", code == -9, f"left with {code}")
        await scene.asked(ASKS_BETWEEN // 2)
    for url in range(len(scene.stack.urls)):
        if scene.stack.web[url] is None:
            await scene.stack.serve(url)


FAULTS = [Fault("F1", "kill -9 of a web process at six points of a turn", 6, 120, kill_at_points)]
