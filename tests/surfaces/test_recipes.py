"""The steps of docs/howto/ask-from-python.md with an HTTP client alone work as they are written there."""

import asyncio
import re
import subprocess
import sys

from lab import ROOT
from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess

PAGE = (ROOT / "docs" / "howto" / "ask-from-python.md").read_text()
MAIN = '\nfor piece in stream(sys.argv[1]):\n    print(piece, end="|")\nprint(ask(sys.argv[1]))\n'


def run(hub: HubProcess, handle: str, token: str, text: str) -> subprocess.CompletedProcess[str]:
    """The how-to's functions with another hub, agent and question: streamed, then whole."""
    [code] = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "HUB, TOKEN, HANDLE" in one]
    functions, main, _ = code.partition('\nprint(ask("hello"))')
    assert main
    code = re.sub(
        r"^HUB, TOKEN, HANDLE = .*$",
        f"import sys\nHUB, TOKEN, HANDLE = {(hub.url, token, handle)!r}",
        functions,
        flags=re.MULTILINE,
    )
    return subprocess.run(
        [sys.executable, "-c", code + MAIN, text], capture_output=True, text=True, timeout=30, check=False
    )


async def test_the_answer_comes_whole_and_without_notes(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        for text, said in (
            ("note reading | say one | note still | say  two", "one| two||one two\n"),
            ("reply at once", "at once|at once\n"),
        ):
            done = await asyncio.to_thread(run, hub, agent.handle, alice, text)
            assert (done.stdout, done.returncode) == (said, 0), done.stderr


async def test_a_question_back_is_told_as_one(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        done = await asyncio.to_thread(run, hub, agent.handle, alice, "ask which day?")
    assert done.stderr.endswith("RuntimeError: INPUT_REQUIRED: which day?\n")
