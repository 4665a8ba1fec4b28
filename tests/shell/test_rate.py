"""`clawbridge rate`: a thumb for the answer of a task."""

import json

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from tests.shell.conftest import Shell


async def test_an_answer_is_rated_and_the_rating_taken_away(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        asked = await shell.run("ask", agent.handle, "hi", "--json")
        failed = await shell.run("ask", agent.handle, "fail so", "--json")
        task, unanswered = (json.loads(one.output)["task"]["id"] for one in (asked, failed))
        rated = await shell.run("rate", task, "down", "--note", "too short", "--json")
        assert json.loads(rated.output) == {"task": task, "rating": "down", "note": "too short"}
        gone = await shell.run("rate", task, "none")
        assert (gone.code, gone.errors) == (0, "The rating is taken away.\n")
        refused = await shell.run("rate", unanswered, "up")
        assert (refused.code != 0, "no answer to rate" in refused.errors) == (True, True)
        wrong = await shell.run("rate", task, "great")
        assert (wrong.code, "'up', 'down', 'none'" in wrong.errors) == (2, True)
