"""Fail points: a process dies where it was told to, and nowhere else."""

import os
import signal
import subprocess
import sys

from lab import ROOT

PROGRAM = """
from kit.failpoints import reach
for number in range(3):
    if reach:
        reach("here")
    print(number, flush=True)
if reach:
    reach("there")
print("alive")
"""


def run(points: str | None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "FAIL_POINTS"}
    given = env if points is None else env | {"FAIL_POINTS": points}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=given, cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_without_the_variable_nothing_happens_and_nothing_is_said() -> None:
    done = run(None)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["0", "1", "2", "alive"], "")


def test_it_dies_the_nth_time_it_gets_there() -> None:
    done = run("elsewhere:1, here:2")
    assert (done.returncode, done.stdout.split()) == (-signal.SIGKILL, ["0"])
    assert "will kill itself" in done.stderr


def test_the_first_time_when_no_number_is_given() -> None:
    assert run("there").stdout.split() == ["0", "1", "2"]
