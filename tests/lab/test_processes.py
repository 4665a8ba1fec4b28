"""The supervisor of child processes: ready when they say so, ended for certain."""

import os
import signal
from pathlib import Path

import pytest

from lab.processes import Program, ProgramError, printed, python, run
from lab.waiting import until

FOREVER = "while :; do sleep 0.05; done"


def shell(script: str, folder: Path, **options: object) -> Program:
    return Program(["/bin/sh", "-c", script], folder / "shell.log", **options)  # type: ignore[arg-type]


def test_it_runs_from_its_ready_line_to_the_end_of_the_block(tmp_path: Path) -> None:
    with shell(f"echo starting; echo ready; {FOREVER}", tmp_path, is_ready=printed("ready\n")) as program:
        assert program.lines == ["starting", "ready"]
        assert not program.has_ended
    assert program.has_ended
    assert program.exit_code() == -signal.SIGTERM


def test_started_again_it_has_the_output_of_that_start_and_a_log_of_both(tmp_path: Path) -> None:
    (tmp_path / "shell.log").write_text("of an earlier run")
    program = shell("echo $$", tmp_path, is_ready=lambda program: bool(program.lines))
    outputs = []
    for _ in range(2):
        program.start()
        assert program.exit_code() == 0
        outputs.append(program.output)
        assert outputs[-1] == f"{program.pid}\n"
    assert program.log.read_text() == "".join(outputs)


def test_what_ends_before_it_is_ready_is_an_error_with_its_last_output(tmp_path: Path) -> None:
    program = shell("echo no space; exit 3", tmp_path, is_ready=printed("ready"))
    with pytest.raises(ProgramError, match=r"shell ended with 3(?s:.*)no space"):
        program.start()


def test_what_is_not_ready_in_time_is_an_error_and_is_ended_by_the_block(tmp_path: Path) -> None:
    program = shell(FOREVER, tmp_path, is_ready=printed("ready"), within_s=0.2)
    with pytest.raises(ProgramError, match=r"was not ready in 0\.2 s"), program:
        pass
    assert program.has_ended


def test_what_ignores_its_signal_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"trap '' TERM; (trap '' TERM; {FOREVER}) & echo $!; {FOREVER}"
    program = shell(script, tmp_path, is_ready=lambda program: bool(program.lines), within_s=0.3)
    program.start()
    child = int(program.lines[0])
    assert not program.stop()
    assert program.exit_code() == -signal.SIGKILL
    until(lambda: _is_gone(child), "its child is gone", within_s=30)


def test_it_reads_what_it_is_given(tmp_path: Path) -> None:
    with shell("cat; echo end", tmp_path, stdin="one line\n", is_ready=printed("end\n")) as program:
        assert program.lines == ["one line", "end"]


def test_a_command_that_fails_is_an_error_with_all_it_printed(tmp_path: Path) -> None:
    assert run(["/bin/sh", "-c", "pwd"], {}, folder=tmp_path).strip() == str(tmp_path)
    with pytest.raises(ProgramError, match=r"failed:\n(?s:.*)why"):
        run(["/bin/sh", "-c", "echo why >&2; exit 1"], {})


def _is_gone(pid: int) -> bool:
    """Killed: not there any more, or a zombie until its new parent looks."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def test_processes_take_ports_of_their_own(tmp_path: Path) -> None:
    """Between the look at a port and the start of its server, no other process is given the same one."""
    imports = "import signal; from lab.processes import free_port"
    code = f"{imports}; print(*(free_port() for _ in range(100))); signal.pause()"
    command, has_printed = python("-uc", code), lambda program: bool(program.lines)
    with (
        Program(command, tmp_path / "first.log", is_ready=has_printed) as first,
        Program(command, tmp_path / "second.log", is_ready=has_printed) as second,
    ):
        ports = {*first.lines[0].split(), *second.lines[0].split()}
    assert len(ports) == 200
