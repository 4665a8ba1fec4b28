"""`clawbridge artifacts`: lists what an agent made for a task, and saves it under safe names."""

import asyncio
import json
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from pathlib import Path

import pytest

from clawbridge.shapes import safe_name
from lab import ROOT
from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from lab.processes import python
from lab.receivers import Handler, serving_http
from tests.shell.conftest import WITHIN_S, Shell

STEPS = 'text a1 chapter one, | more a1 chapter two | data a2 {"b": 4} | raw a3 hello | raw A3 world'
LARGE = b"x" * 2**21


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\win.ini", "win.ini"),
        (".bashrc", "bashrc"),
        ("..", ""),
        ("a\x1b[2J\u202egnp.exe", "a_[2J_gnp.exe"),
        ("nul.txt", "_nul.txt"),
        ('what?<"*>|:', "what_______"),
        (f"{'ä' * 300}.txt", f"{'ä' * 98}.txt"),
    ],
)
def test_a_name_is_safe_in_any_folder(given: str, name: str) -> None:
    assert safe_name(given) == name


async def ask(shell: Shell, agent: TaskPeer, steps: str) -> str:
    """The id of the task that an agent completed with these steps."""
    asked = await shell.run("ask", agent.handle, steps, "--json")
    task: str = json.loads(asked.output)["task"]["id"]
    return task


async def test_artifacts_are_listed_page_by_page_and_saved(embedded_hub: HubProcess, shell: Shell) -> None:
    folder = shell.folder / "results" / "today"
    async with online(embedded_hub, TaskPeer) as agent:
        task = await ask(shell, agent, STEPS)
        listed = await shell.run("artifacts", task)
        lines = [line.split() for line in listed.output.splitlines()]
        assert lines[:2] == [["FILE", "TYPE", "BYTES", "ARTIFACT"], ["a1.txt", "text/plain", "23", "a1"]]
        page = await shell.run("artifacts", task, "--limit", "1", "--offset", "1")
        assert page.output.splitlines()[1:] == ["a2.json  application/json  13     a2"]
        assert page.errors.startswith("2 of ")
        assert page.errors.endswith(" files; --offset 2 continues\n")
        saved = await shell.run("artifacts", task, "--save", str(folder), "--limit", "4")
        names = ("a1.txt", "a2.json", "a3.txt", "A3-2.txt")
        assert saved.output.splitlines() == [str(folder / name) for name in names]
        content = [(folder / name).read_text() for name in names]
        assert content == ["chapter one,chapter two", '{\n  "b": 4\n}\n', "hello", "world"]
        assert sorted(path.name for path in folder.iterdir()) == sorted(names)


async def test_no_file_is_replaced_unless_that_is_wanted(embedded_hub: HubProcess, shell: Shell) -> None:
    elsewhere = shell.folder / "elsewhere"
    elsewhere.write_text("mine")
    (shell.folder / "a1.txt").symlink_to(elsewhere)
    async with online(embedded_hub, TaskPeer) as agent:
        task = await ask(shell, agent, "text a0 first | text a1 second")
        save = ("artifacts", task, "--save", str(shell.folder), "--limit", "2")
        refused = await shell.run(*save)
        assert (refused.code, "--overwrite" in refused.errors) == (2, True)
        assert not (shell.folder / "a0.txt").exists()
        replaced = await shell.run(*save, "--overwrite", "--json")
        items = json.loads(replaced.output)["items"]
        assert [(one["path"], one["bytes"]) for one in items] == [
            (str(shell.folder / "a0.txt"), 5),
            (str(shell.folder / "a1.txt"), 6),
        ]
        assert (elsewhere.read_text(), (shell.folder / "a1.txt").read_text()) == ("mine", "second")
        none = await shell.run("artifacts", task, "--overwrite")
        assert (none.code, "need --save" in none.errors) == (2, True)


@contextmanager
def file_server(heads: list[Message]) -> Iterator[str]:
    """The address of a file of 2 MiB, at any path but `/absent`; notes what clients sent."""

    class FileHandler(Handler):
        def do_GET(self) -> None:
            heads.append(self.headers)
            if self.path == "/absent":
                self.answer(404)
            else:
                self.answer(200, LARGE)

    with serving_http(FileHandler) as port:
        yield f"http://127.0.0.1:{port}"


def save_on_a_terminal(shell: Shell, *arguments: str) -> tuple[int, str]:
    """The exit code, and what standard error shows on a terminal."""
    ours, its = pty.openpty()
    command = python("-m", "clawbridge", *arguments)
    with subprocess.Popen(command, cwd=ROOT, env=shell.env, stdout=subprocess.DEVNULL, stderr=its) as process:
        os.close(its)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        return process.wait(WITHIN_S), shown.decode()


async def test_links_are_downloaded_when_wanted_without_the_token(embedded_hub: HubProcess, shell: Shell) -> None:
    heads: list[Message] = []
    with file_server(heads) as server:
        async with online(embedded_hub, TaskPeer) as agent:
            task = await ask(shell, agent, f"url a1 {server}/large | url a2 {server}/absent | text a3 here")
            save = ("artifacts", task, "--limit", "3", "--save")
            plain = await shell.run(*save, str(shell.folder / "plain"))
            assert (plain.code, plain.output) == (0, f"{shell.folder / 'plain' / 'a3.txt'}\n")
            assert f"a1 is at {server}/large: --links downloads it" in plain.errors
            assert not heads
            folder = shell.folder / "all"
            code, shown = await asyncio.to_thread(save_on_a_terminal, shell, *save, str(folder), "--links")
            assert (code, "100%" in shown) == (9, True), shown
            assert "answered HTTP 404" in shown
            assert (folder / "a1").read_bytes() == LARGE
            assert sorted(path.name for path in Path(folder).iterdir()) == ["a1", "a3.txt"]
            assert ["Authorization" in head for head in heads] == [False, False]
