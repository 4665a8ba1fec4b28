"""`clawbridge evaluations` against a running hub."""

import json

from lab.agents import Echo, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from tests.shell.conftest import Shell


async def test_sets_are_listed_run_and_shown(embedded_hub: HubProcess, shell: Shell) -> None:
    owner = embedded_hub.mint("examiner", "session")
    shell.env["CLAWBRIDGE_TOKEN"] = owner
    none = await shell.run("evaluations")
    assert (none.code, none.output) == (0, "")
    assert "No set of saved questions" in none.errors
    async with online(embedded_hub, Echo, owner="examiner") as agent:
        questions = [{"text": "hi", "expected": "contains", "expectation": "echo"}]
        body = {"agent": agent.handle, "name": "Greetings", "questions": questions}
        async with web(embedded_hub.url, headers=bearer(owner)) as client:
            number = str((await client.post("/api/v1/evaluations", json=body)).json()["id"])
            assert "not run yet" in (await shell.run("evaluations", "show", number)).errors
            passed = await shell.run("evaluations", "run", number)
            assert (passed.code, "passed  hi" in passed.output) == (0, True)
            questions[0]["expectation"] = "hello"
            await client.patch(f"/api/v1/evaluations/{number}", json={"questions": questions})
        failed = await shell.run("evaluations", "run", number, "--json")
        assert (failed.code, json.loads(failed.output)["notPassed"]) == (1, 1)
        assert "0 of 1 questions passed" in failed.errors
        shown = await shell.run("evaluations", "show", number)
        assert "not passed  hi        the answer does not contain the text" in shown.output
        listed = await shell.run("evaluations", "list", "--agent", agent.handle)
        assert "Greetings  off       1          0 of 1 passed" in listed.output
        begun = await shell.run("evaluations", "run", number, "--no-wait")
        assert (begun.code, "has begun" in begun.errors) == (0, True)
    assert (await shell.run("evaluations", "run", "999999")).code != 0
