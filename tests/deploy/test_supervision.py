"""The stack starts ended programs again: each alone, after its servers, and not forever."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.stack.supervision import MAX_FAILURES, TOO_SOON_S, Supervisor
from lab.processes import Program, ProgramError, printed
from lab.waiting import until

FOREVER = "while :; do sleep 0.05; done"
COUNT = "n=$(($(cat starts 2>/dev/null || echo 0) + 1)); echo $n > starts"
WITHIN_S = 60
PAUSE_S = 0.01


class Stack:
    """Running programs, each in a folder of its own, and the progress lines of the supervisor."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs: list[Program] = []
        self.told: list[str] = []

    def start(self, name: str, script: str) -> Program:
        """Start a program that runs the script, then prints `ready`. `n` in the script: the number of starts."""
        place = self.folder / name
        place.mkdir()
        command = ["/bin/sh", "-c", f"{COUNT}; {script}; echo ready; {FOREVER}"]
        ready = printed("ready\n")
        program = Program(command, place / "log", name=name, folder=place, is_ready=ready)
        self.programs.append(program)
        program.start()
        return program

    def supervise(
        self, servers: list[Program], others: list[Program], too_soon_s: float = TOO_SOON_S
    ) -> Supervisor:
        return Supervisor(servers, others, tell=self.told.append, first_pause_s=PAUSE_S, too_soon_s=too_soon_s)

    def starts(self, program: Program) -> int:
        return int((program.folder / "starts").read_text() or 0)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    made = Stack(tmp_path)
    yield made
    for program in made.programs:
        program.kill()
        program.kill_children()


def kill(*programs: Program) -> None:
    for program in programs:
        os.kill(program.pid, signal.SIGKILL)
    until(lambda: all(one.has_ended for one in programs), "they ended", within_s=WITHIN_S)


def look_until_runs(supervisor: Supervisor, *programs: Program) -> list[Program]:
    """Call `look` until the programs run again; the order in which they did."""
    again: list[Program] = []
    until(lambda: again.extend(supervisor.look()) or len(again) >= len(programs), "they run", within_s=WITHIN_S)
    assert set(again) == set(programs)
    return again


def test_a_program_whose_start_fails_is_started_once_more(stack: Stack) -> None:
    web = stack.start("web", "if [ $n = 2 ]; then echo no port; exit 3; fi")
    supervisor = stack.supervise([], [web])
    kill(web)
    look_until_runs(supervisor, web)
    assert stack.starts(web) == 3
    assert "web ended with 3" in stack.told[1]
    assert "no port" in stack.told[1]
    assert stack.told[-1] == "web runs again"


def test_a_program_that_always_fails_ends_the_stack_with_its_last_output(stack: Stack) -> None:
    web = stack.start("web", "if [ $n != 1 ]; then echo no disk; exit 3; fi")
    supervisor = stack.supervise([], [web])
    kill(web)
    with pytest.raises(ProgramError, match=rf"web failed {MAX_FAILURES} times in a row(?s:.*)no disk"):
        until(supervisor.look, "it gives up", within_s=WITHIN_S)
    assert stack.starts(web) == MAX_FAILURES


def test_a_program_waits_for_its_server_when_both_were_killed(stack: Stack) -> None:
    server = stack.start("server", "while [ $n != 1 ] && [ ! -e go ]; do sleep 0.01; done")
    web = stack.start("web", "true")
    supervisor = stack.supervise([server], [web])
    kill(web, server)
    until(lambda: supervisor.look() or stack.starts(server) == 2, "the server starts", within_s=WITHIN_S)
    assert stack.starts(web) == 1
    (server.folder / "go").touch()
    assert look_until_runs(supervisor, server, web) == [server, web]
    assert (stack.starts(server), stack.starts(web)) == (2, 2)


def test_the_end_of_a_program_whose_server_is_down_does_not_count(stack: Stack) -> None:
    server, web = stack.start("server", "true"), stack.start("web", "true")
    supervisor = stack.supervise([server], [web])
    for _ in range(MAX_FAILURES - 1):
        kill(web, server)
        look_until_runs(supervisor, server, web)
    kill(web)
    look_until_runs(supervisor, web)
    assert stack.starts(web) == MAX_FAILURES + 1


def test_the_end_of_a_program_that_ran_for_long_begins_a_new_row(stack: Stack) -> None:
    web = stack.start("web", "true")
    supervisor = stack.supervise([], [web], too_soon_s=0.0)
    for _ in range(MAX_FAILURES + 1):
        kill(web)
        look_until_runs(supervisor, web)


def test_a_program_that_starts_slowly_delays_no_other(stack: Stack) -> None:
    slow = stack.start("slow", "while [ $n != 1 ] && [ ! -e go ]; do sleep 0.01; done")
    quick = stack.start("quick", "true")
    supervisor = stack.supervise([], [slow, quick])
    kill(slow, quick)
    look_until_runs(supervisor, quick)
    (slow.folder / "go").touch()
    look_until_runs(supervisor, slow)


def test_a_program_that_is_not_ready_in_time_is_killed_and_started_again(stack: Stack) -> None:
    web = stack.start("web", f"if [ $n = 2 ]; then {FOREVER}; fi")
    supervisor = stack.supervise([], [web])
    kill(web)
    until(lambda: supervisor.look() or stack.starts(web) == 2, "it starts", within_s=WITHIN_S)
    hanging, web.within_s = web.pid, 0.0
    until(lambda: supervisor.look() or web.has_ended, "it is killed", within_s=WITHIN_S)
    assert web.pid == hanging
    web.within_s = WITHIN_S
    look_until_runs(supervisor, web)
    assert "web was not ready in 0 s" in stack.told[1]


def test_children_of_a_program_that_was_killed_are_ended_before_it_starts_again(stack: Stack) -> None:
    child = f"( {FOREVER} ) & echo $! > child"
    # A killed child is a zombie where no process waits for it.
    is_alive = "grep -qs 'State:.[^Z]' /proc/$(cat child)/status"
    web = stack.start("web", f"if [ $n = 1 ]; then {child}; else while {is_alive}; do sleep 0.05; done; fi")
    supervisor = stack.supervise([], [web])
    kill(web)
    look_until_runs(supervisor, web)
    assert stack.starts(web) == 2


def test_a_program_that_cannot_be_run_is_tried_again(stack: Stack) -> None:
    web = stack.start("web", "true")
    command, web.command = web.command, [stack.folder / "absent"]
    supervisor = stack.supervise([], [web])
    kill(web)
    until(lambda: supervisor.look() or len(stack.told) >= 2, "a start failed", within_s=WITHIN_S)
    web.command = command
    look_until_runs(supervisor, web)
    assert "absent" in stack.told[1]
