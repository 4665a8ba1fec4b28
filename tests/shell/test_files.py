"""`clawbridge files`: what `ask --file` uploaded is listed, and deleted."""

import json
from pathlib import Path

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from lab.pictures import PIXEL
from tests.shell.conftest import Shell


async def test_files_are_listed_and_deleted(embedded_hub: HubProcess, shell: Shell, tmp_path: Path) -> None:
    picture = tmp_path / "chart.png"
    picture.write_bytes(PIXEL)
    async with online(embedded_hub, Echo, agent={"defaultInputModes": ["text/plain", "image/png"]}) as agent:
        asked = await shell.run("ask", agent.handle, "read it", "--file", str(picture))
        assert asked.code == 0, asked.errors
    listed = await shell.run("files")
    assert [word in listed.output for word in ("chart.png", "image/png", f"@{agent.handle}")] == [True] * 3
    newest = json.loads((await shell.run("files", "--limit", "1", "--json")).output)["items"][0]
    assert (newest["filename"], newest["size"]) == ("chart.png", len(PIXEL))
    deleted = await shell.run("files", "--delete", str(newest["id"]))
    assert (deleted.code, deleted.errors) == (0, f"File {newest['id']} is deleted.\n")
    assert "deleted" in (await shell.run("files", "--limit", "1")).output
    absent = await shell.run("files", "--delete", "999999")
    assert absent.code != 0
