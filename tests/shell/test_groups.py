"""`clawbridge groups` against a running hub."""

import json
from uuid import uuid4

from lab.hub_process import HubProcess
from tests.shell.conftest import Shell


async def test_a_group_is_made_listed_and_changed(embedded_hub: HubProcess, shell: Shell) -> None:
    word = uuid4().hex[:8]
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint(f"head-{word}", "session")
    embedded_hub.mint(f"mate-{word}", "session")
    none = await shell.run("groups")
    assert (none.code, none.output) == (0, "")
    assert "You are in no group" in none.errors
    made = await shell.run("groups", "create", f"team-{word}", "The team")
    assert made.code == 0
    assert f"@team-{word} is made" in made.errors
    added = await shell.run("groups", "add", f"@team-{word}", f"mate-{word}", "--role", "auditor", "--json")
    assert json.loads(added.output)["role"] == "auditor"
    for listing in (["groups"], ["groups", "list"], ["groups", "--hub", embedded_hub.url]):
        assert f"@team-{word}  maintainer  The team" in (await shell.run(*listing)).output
    as_json = await shell.run("groups", "--json")
    assert [one["slug"] for one in json.loads(as_json.output)["items"]] == [f"team-{word}"]
    assert "Create a group" in (await shell.run("groups", "--help")).output
    assert f"@mate-{word}  auditor" in (await shell.run("groups", "members", f"team-{word}")).output
    assert (await shell.run("groups", "remove", f"team-{word}", f"mate-{word}")).code == 0
    last = await shell.run("groups", "remove", f"team-{word}", f"head-{word}")
    assert last.code != 0
    assert "no maintainer" in last.errors
    assert (await shell.run("groups", "add", "no/slash", "x")).code == 2
