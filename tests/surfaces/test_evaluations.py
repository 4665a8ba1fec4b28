"""Runs of saved questions: agents on real sockets are asked, and their answers are compared, or judged."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from httpx2 import AsyncClient

from kit.outbox import RUN_FOR_S
from lab.agents import Echo, Held, Slow, TaskPeer, online
from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess
from lab.waiting import eventually, on_hub

LONGER_THAN_A_SENDER_S = 2 * on_hub(RUN_FOR_S)
EVALUATIONS = "/api/v1/evaluations"


class Judge(Echo):
    """Passes the answer `echo: right` and fails others; gives no verdict on the answer `echo: mute`."""

    async def answer(self, prompt: Json) -> None:
        text = prompt["text"]
        said = "hm" if "mute" in text else "PASS it does" if "echo: right" in text else "FAIL it does not"
        await self.reply(prompt["chatId"], said)


@asynccontextmanager
async def owner_of(hub: HubProcess) -> AsyncIterator[AsyncClient]:
    """The owner of the agents, as a client of REST."""
    async with web(hub.url, headers=bearer(hub.mint("owner", "session"))) as client:
        yield client


async def run_set(client: AsyncClient, handle: str, *questions: Json, **settings: Any) -> Json:
    """Make a set, run it, and return the run once it has ended."""
    body = {"agent": handle, "name": f"set of {handle}", "questions": questions, **settings}
    made = (await client.post(EVALUATIONS, json=body)).json()
    return await run_again(client, made["id"])


async def run_again(client: AsyncClient, set_id: int) -> Json:
    started = (await client.post(f"{EVALUATIONS}/{set_id}/runs")).json()
    found: Json = {}

    async def has_ended() -> bool:
        found.update((await client.get(f"{EVALUATIONS}/{set_id}/runs/{started['id']}")).json())
        return found["endedAt"] is not None

    await eventually(has_ended, "the run has ended", within_s=20)
    return found


def results(run: Json) -> list[tuple[str, str]]:
    return [(one["question"], one["state"]) for one in run["results"]]


def asked(text: str, expected: str, expectation: str, **more: str) -> Json:
    return {"text": text, "expected": expected, "expectation": expectation, **more}


async def test_a_run_asks_every_question_and_compares_the_answers(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent, online(hub, Judge) as judge, owner_of(hub) as client:
        run = await run_set(
            client,
            agent.handle,
            asked("one", "contains", "ECHO: one"),
            asked("two", "matches", "^echo: one"),
            asked("three", "json_schema", '{"type": "object"}'),
            asked("right", "judged", "says right", judge=judge.handle),
            asked("left", "judged", "says right", judge=judge.handle),
            asked("mute", "judged", "says right", judge=judge.handle),
        )
        assert results(run) == [
            ("one", "passed"),
            ("two", "not_passed"),
            ("three", "not_passed"),
            ("right", "passed"),
            ("left", "not_passed"),
            ("mute", "failed"),
        ]
        judged = run["results"][4]
        assert (judged["answer"], judged["detail"]) == ("echo: left", "it does not")
        whole = (await client.get(f"/api/v1/questions/{judged['routeId']}")).json()
        assert whole["question"] == "left"
        assert (await client.get(f"/api/v1/questions/{judged['judgeRouteId']}")).status_code == 200
        assert (await client.get(f"{EVALUATIONS}?agent={agent.handle}")).json()["items"][0]["asksToday"] == 9
        today = (await client.get(f"/api/v1/agents/by-handle/{agent.handle}")).json()
        assert today["queriesToday"] == 6


async def test_questions_beyond_the_budget_of_the_set_are_left_out(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent, owner_of(embedded_hub) as client:
        questions = [asked(text, "contains", text) for text in ("one", "two", "three")]
        run = await run_set(client, agent.handle, *questions, dailyBudget=2)
        assert results(run) == [("one", "passed"), ("two", "passed"), ("three", "left_out")]
        assert "budget" in run["results"][2]["detail"]


async def test_an_answer_that_cannot_be_had_fails_and_says_why(embedded_hub: HubProcess) -> None:
    async with owner_of(embedded_hub) as client:
        async with online(embedded_hub, TaskPeer) as agent:
            run = await run_set(client, agent.handle, asked("fail so", "contains", "so"))
            [failed] = run["results"]
            assert (failed["state"], failed["detail"], bool(failed["routeId"])) == ("failed", "so", True)
            set_id = (await client.get(f"{EVALUATIONS}?agent={agent.handle}")).json()["items"][0]["id"]
        offline = (await run_again(client, set_id))["results"][0]
        assert (offline["state"], offline["routeId"]) == ("failed", "")
        assert "offline" in offline["detail"]
        listed = (await client.get(f"{EVALUATIONS}?agent={agent.handle}")).json()["items"][0]
        assert listed["asksToday"] == 1  # the second reached no agent


async def test_the_questions_of_a_run_are_asked_one_after_the_other(embedded_hub: HubProcess) -> None:
    async with (
        online(embedded_hub, Slow, delay_s=LONGER_THAN_A_SENDER_S) as agent,
        owner_of(embedded_hub) as client,
    ):
        run = await run_set(client, agent.handle, *[asked(one, "contains", one) for one in "abc"])
        assert run["passed"] == 3
        ends = [ended for _, ended, _ in agent.spans]
        assert all(began >= end for (began, _, _), end in zip(agent.spans[1:], ends, strict=False))


async def test_a_stopped_run_keeps_no_late_answer(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Held) as agent, owner_of(embedded_hub) as client:
        body = {"agent": agent.handle, "name": "held", "questions": [asked(one, "contains", one) for one in "ab"]}
        made = (await client.post(EVALUATIONS, json=body)).json()
        run = (await client.post(f"{EVALUATIONS}/{made['id']}/runs")).json()
        address = f"{EVALUATIONS}/{made['id']}/runs/{run['id']}"

        async def has_arrived() -> bool:
            return any(frame.get("type") == "prompt" for frame in agent.frames)

        await eventually(has_arrived, "the first question has arrived")
        stopped = (await client.post(f"{address}/stop")).json()
        assert (stopped["stopped"], stopped["leftOut"]) == (True, 2)
        agent.release.set()
        again = await run_again(client, made["id"])
        assert (again["passed"], len(agent.spans)) == (2, 3)
        assert (await client.get(address)).json()["leftOut"] == 2
