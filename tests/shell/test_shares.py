"""`clawbridge share`, `shares`, `shared` and `unshare`: an answer is shown to others until its share ends."""

import json

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from tests.shell.conftest import Shell


async def test_an_answer_is_shared_read_and_ended(embedded_hub: HubProcess, shell: Shell) -> None:
    reader = embedded_hub.mint("shell-reader", "session")
    async with online(embedded_hub, TaskPeer) as agent:
        asked = await shell.run("ask", agent.handle, "raw report figures | reply the answer", "--json")
        task = json.loads(asked.output)["task"]["id"]
    without = await shell.run("share", task)
    assert (without.code, "--with LOGIN" in without.errors) == (2, True)
    made = await shell.run("share", task, "--with", "shell-reader", "--link", "--days", "2")
    assert made.code == 0, made.errors
    page, link = made.output.split()
    assert "for @shell-reader, until" in made.errors
    listed = await shell.run("shares")
    assert "@shell-reader" in listed.output
    assert link not in listed.output
    received = await shell.run("shares", "--received", CLAWBRIDGE_TOKEN=reader)
    assert "@shell-user" in received.output
    for address in (page, link, page.rpartition("/")[2]):
        read = await shell.run("shared", address, CLAWBRIDGE_TOKEN=reader)
        assert (read.code, read.output) == (
            0,
            "figures\nthe answer\n" if "figures" in read.output else "the answer\n",
        )
        assert "@shell-user asked" in read.errors
        assert "file report.txt" in read.errors
    ended = await shell.run("unshare", page.rpartition("/")[2])
    assert (ended.code, ended.errors) == (0, "It is not shared any more.\n")
    gone = await shell.run("shared", page, CLAWBRIDGE_TOKEN=reader)
    assert (gone.code, "no such share" in gone.errors) == (8, True)
    wrong = await shell.run("shared", "https://elsewhere.example/page")
    assert (wrong.code, "is no share" in wrong.errors) == (2, True)
