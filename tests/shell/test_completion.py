"""Completion of commands, options and handles, as the shells ask for it."""

import asyncio
import json
import re
import shlex
import subprocess
from contextlib import suppress

from lab import ROOT
from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from lab.processes import python
from tests.shell.conftest import WITHIN_S, Shell

# What bash sets before it calls the function of a completion: it parts words at @, = and : too.
IN_BASH = """
source /dev/stdin <<< "$SCRIPT"
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
_clawbridge_completion "$COMMAND"
printf '%s\\n' "${COMPREPLY[@]}"
"""


async def complete_in_bash(shell: Shell, script: str, line: str) -> list[str]:
    command = shell.folder / "clawbridge"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(python("-m", "clawbridge"))} "$@"\n')
    command.chmod(0o700)
    words = re.split(r"[ ]|(?<=[@=:])|(?=[@=:])", line)
    variables = f"COMP_WORDS=({shlex.join(filter(None, words))}) COMP_CWORD={len(words) - 1}\n"
    env = shell.env | {"SCRIPT": script, "LINE": line, "COMMAND": str(command)}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--norc", "-c", variables + IN_BASH],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
        )

    ended = await asyncio.to_thread(run)
    assert ended.stderr == ""
    return ended.stdout.split()


async def ask_protocol(shell: Shell, name: str, line: str, **env: str) -> list[str]:
    """The lines that the script of zsh or fish gets from the command."""
    word = line.rpartition(" ")[2]
    words = {"COMP_WORDS": line, "COMP_CWORD": word if name == "fish" else str(line.count(" "))}
    command = await shell.run(**words, _CLAWBRIDGE_COMPLETE=f"{name}_complete", **env)
    assert (command.code, command.errors) == (0, "")
    return command.output.strip().splitlines()


async def test_shells_complete_commands_options_and_handles(embedded_hub: HubProcess, shell: Shell) -> None:
    bash, zsh, fish = [(await shell.run("completion", name)).output for name in ("bash", "zsh", "fish")]
    as_json = await shell.run("completion", "bash", "--json")
    assert json.loads(as_json.output) == {"shell": "bash", "script": bash.removesuffix("\n")}
    assert "#compdef clawbridge" in zsh
    assert "complete --no-files --command clawbridge" in fish
    async with online(embedded_hub, Echo, agent={"tagline": "Says it again"}) as agent:
        handle = f"@{agent.handle}"
        for line in (f"clawbridge ask {handle}", f"clawbridge tasks --hub {embedded_hub.url} {agent.handle}"):
            assert handle in await complete_in_bash(shell, bash, line)
        offered = await ask_protocol(shell, "zsh", f"clawbridge ask {handle}")
        assert offered[offered.index(handle) + 1] == "Says it again"
        assert f"plain,{handle}\tSays it again" in await ask_protocol(shell, "fish", f"clawbridge ask {handle}")
    async with online(embedded_hub, TaskPeer) as agent:
        waiting, done = [
            json.loads((await shell.run("ask", agent.handle, step, "--json")).output)["task"]["id"]
            for step in ("ask which day?", "reply done")
        ]
        assert f"{waiting}\n@{agent.handle}: ask which day?" in "\n".join(
            await ask_protocol(shell, "zsh", "clawbridge reply task-")
        )
        assert done not in await complete_in_bash(shell, bash, f"clawbridge reply {done}")
    assert await complete_in_bash(shell, bash, "clawbridge ta") == ["tasks"]
    assert await complete_in_bash(shell, bash, "clawbridge groups re") == ["remove"]
    assert await complete_in_bash(shell, bash, "clawbridge ask --fi") == ["--file"]
    assert await complete_in_bash(shell, bash, "clawbridge connect --pre") == ["--preset"]
    assert await complete_in_bash(shell, bash, f"clawbridge agents --hub={embedded_hub.url} --onl") == ["--online"]


async def test_without_an_answer_nothing_is_offered_and_nothing_printed(shell: Shell) -> None:
    left = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer byte by byte, without an end."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.2)
        writer.close()
        left.set()

    line = "clawbridge ask @"
    assert await ask_protocol(shell, "zsh", line, CLAWBRIDGE_TOKEN="") == []
    assert await ask_protocol(shell, "zsh", line, CLAWBRIDGE_HUB="http://hub.invalid") == []
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert await ask_protocol(shell, "zsh", line, CLAWBRIDGE_HUB=f"http://127.0.0.1:{port}") == []
        await left.wait()
