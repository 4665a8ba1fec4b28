"""Lists of agents and tasks by `clawbridge`, and its sign-in."""

import json
import re
import signal
from pathlib import Path
from uuid import uuid4

from lab.agents import Echo, TaskPeer, gone, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.shell.conftest import Shell

SIGNED_IN = {"CLAWBRIDGE_HUB": "", "CLAWBRIDGE_TOKEN": ""}  # by what `login` stored alone


async def test_agents_and_tasks_are_listed(embedded_hub: HubProcess, shell: Shell) -> None:
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint("lister", "session")
    word = uuid4().hex  # other agents of this hub have handles that begin alike
    async with online(embedded_hub, Echo, agent={"tagline": f"Says \x9b2J {word}"}) as agent:
        none = await shell.run("tasks")
        assert (none.code, none.output) == (0, "")
        assert "No question yet" in none.errors
        for question in ("one", "two\nlines"):
            assert (await shell.run("ask", agent.handle, question)).code == 0
        listed = await shell.run("agents", word)
        assert listed.output == (
            f"{'AGENT':{len(agent.handle) + 1}}  STATE   ABOUT\n"
            f"@{agent.handle}  online  Says \N{REPLACEMENT CHARACTER}2J {word}\n"
        )
        tasks = await shell.run("tasks", f"@{agent.handle}", "--limit", "1")
        assert re.search(rf"completed  @{agent.handle}  task-\w+  two lines\n$", tasks.output)
        before = re.findall(r"more: --before (\S+)\n", tasks.errors)
        older = await shell.run("tasks", agent.handle, "--before", before[0], "--json")
        assert [one["question"] for one in json.loads(older.output)["items"]] == ["one"]
    await gone(embedded_hub, agent)
    offline = await shell.run("agents", word, "--online")
    assert (offline.output, "No agent fits" in offline.errors) == ("", True)


async def test_failures_are_listed_shown_and_resolved(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        owner = agent.handle.partition("/")[0]
        shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint(owner, "session")
        assert "which failure" in (await shell.run("failures", "--resolve")).errors
        assert (await shell.run("ask", agent.handle, "fail no disk 7")).code != 0

        async def is_counted() -> bool:
            return "no disk <number>" in (await shell.run("failures", "--agent", agent.handle)).output

        await eventually(is_counted, "the failure is listed", within_s=30)
        listed = await shell.run("failures", "--agent", f"@{agent.handle}", "--json")
        [failure] = json.loads(listed.output)["items"]
        shown = await shell.run("failures", str(failure["id"]))
        assert re.search(rf"open   1      1 .* @{agent.handle}  no disk <number>\n", shown.output)
        assert re.search(rf"@{owner} .* no disk 7\n$", shown.output)
        assert " resolved " in (await shell.run("failures", str(failure["id"]), "--resolve")).output
        none = await shell.run("failures", "--agent", agent.handle)
        assert (none.output, "--state all" in none.errors) == ("", True)
        assert (await shell.run("failures", "999999")).code != 0


async def test_favourites_are_marked_listed_and_removed(embedded_hub: HubProcess, shell: Shell) -> None:
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint("marker", "session")
    async with online(embedded_hub, Echo, agent={"tags": ["echoes"]}) as agent:
        assert "No favourite" in (await shell.run("favourites")).errors
        assert (await shell.run("favourites", agent.handle)).code != 0
        marked = await shell.run("favourites", f"@{agent.handle}", "--add")
        assert f"@{agent.handle}  " in marked.output
        for options in (["--favourites"], ["--favourites", "--tag", "echoes", "--sort", "use"]):
            assert f"@{agent.handle}  online" in (await shell.run("agents", *options)).output
        assert "No agent fits" in (await shell.run("agents", "--favourites", "--tag", "other")).errors
        assert (await shell.run("favourites", agent.handle, "--remove")).output == ""


async def test_ctrl_c_ends_a_sign_in_with_the_exit_code_of_a_signal(shell: Shell) -> None:
    login = shell.start("login", CLAWBRIDGE_TOKEN="")

    async def shown() -> bool:
        return "allow the code" in login.errors

    await eventually(shown, "the command shows a code", within_s=30)
    login.process.send_signal(signal.SIGINT)
    assert await login.end() == 130
    assert "Traceback" not in login.errors


async def test_a_device_sign_in_is_stored_used_and_revoked(embedded_hub: HubProcess, shell: Shell) -> None:
    cookies = {"cw_session": embedded_hub.mint("device-user", "session")}
    login = shell.start("login", "--json", CLAWBRIDGE_TOKEN="")

    async def shown() -> str | None:
        found = re.search(r"allow the code ([A-Z]{4}-[A-Z]{4})", login.errors)
        return found[1] if found else None

    code = await eventually(shown, "the command shows a code", within_s=30)
    async with web(embedded_hub.url, cookies=cookies, headers={"Origin": embedded_hub.url}) as browser:
        await browser.get("/device")
        form = {"csrfmiddlewaretoken": browser.cookies["csrftoken"], "user_code": code, "decision": "allow"}
        assert (await browser.post("/device", data=form)).status_code == 302
    assert await login.end() == 0
    assert login.errors.endswith(f"signed in to {embedded_hub.url} as device-user\n")
    asked, done = map(json.loads, login.output.splitlines())
    uri = f"{embedded_hub.url}/device"
    assert (asked["hub"], asked["verificationUri"], asked["userCode"]) == (embedded_hub.url, uri, code)
    assert (asked["expiresInS"], done) == (600, {"hub": embedded_hub.url, "login": "device-user"})
    file = Path(shell.folder, "config", "clawbridge", "hubs.json")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    token = json.loads(file.read_text())["hubs"][embedded_hub.url]["token"]
    assert token not in login.errors
    assert (await shell.run("agents", **SIGNED_IN)).code == 0
    left = await shell.run("logout", "--json", **SIGNED_IN)
    assert (left.code, json.loads(left.output)) == (0, {"hub": embedded_hub.url})
    assert token not in file.read_text()
    async with web(embedded_hub.url, headers=bearer(token)) as client:
        assert (await client.get("/api/v1/me")).status_code == 401
    again = await shell.run("logout", "--hub", embedded_hub.url, **SIGNED_IN)
    assert (again.code, again.errors) == (7, f"clawbridge: not signed in to {embedded_hub.url}\n")
