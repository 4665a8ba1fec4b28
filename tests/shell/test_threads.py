"""Threads by `clawbridge`: found by their words, printed, renamed, archived, deleted."""

import json
import re

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from tests.shell.conftest import Shell


async def test_threads_are_listed_printed_changed_and_deleted(embedded_hub: HubProcess, shell: Shell) -> None:
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint("threader", "session")
    none = await shell.run("threads")
    assert (none.code, none.output) == (0, "")
    assert "No thread yet" in none.errors
    async with online(embedded_hub, Echo) as agent:
        assert (await shell.run("ask", agent.handle, "what is a fiddlehead?")).code == 0
        listed = await shell.run("threads", "fiddleheads", "--agent", f"@{agent.handle}")
        found = re.search(rf"([0-9a-f-]{{36}})  @{agent.handle}  1 +what is a fiddlehead\?\n$", listed.output)
        assert found
        assert "No thread fits" in (await shell.run("threads", "unheard")).errors
        printed = await shell.run("thread", found[1])
        assert printed.output.startswith("# what is a fiddlehead?\n")
        assert "echo: what is a fiddlehead?" in printed.output
        context = re.search(r"--context (\S+) QUESTION", printed.errors)
        assert context
        assert (await shell.run("ask", agent.handle, "and now?", "--context", context[1])).code == 0
        exported = json.loads((await shell.run("thread", found[1], "--json")).output)
        assert len(exported["tasks"]) == 2
        assert "Current: Ferns" in (await shell.run("thread", found[1], "--title", "Ferns")).errors
        archived = await shell.run("thread", found[1], "--archive", "--json")
        assert json.loads(archived.output)["archived"] is True
        assert "Current: Ferns" in (await shell.run("thread", found[1], "--restore")).errors
        assert (await shell.run("thread", found[1], "--delete", "--title", "x")).code == 2
        assert "Deleted." in (await shell.run("thread", found[1], "--delete")).errors
        gone = await shell.run("thread", found[1])
        assert (gone.code, "no such thread" in gone.errors) == (8, True)
        assert (await shell.run("thread", "../me")).code == 2
