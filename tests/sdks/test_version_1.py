"""Features that A2A 1.0 has besides, by its official clients and over both bindings."""

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from tests.sdks.clients import SdkClient

HOOK = "https://8.8.8.8/hook"  # public, and never called: these tasks have ended


async def test_the_extended_card_is_for_callers_with_a_token(
    hub: HubProcess, alice: str, client_1: SdkClient
) -> None:
    async with online(hub, TaskPeer, agent={"name": "rust expert"}) as agent:
        run = await client_1.watch(hub.url, agent.handle, alice, "extended_card")
    card = run.has_not_raised().one("card").value
    assert card["name"] == "rust expert"
    assert card["capabilities"]["extendedAgentCard"] is True


async def test_tasks_are_listed_page_by_page(hub: HubProcess, alice: str, client_1: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client_1.watch(hub.url, agent.handle, alice, "list_tasks", text="say ferris")
    first, second = (answer.task_id for answer in run.at("answer"))
    newest, oldest, whole = (page.value for page in run.at("page"))
    assert [task["id"] for task in newest["tasks"]] == [second]
    assert newest["totalSize"] == 2
    assert newest["nextPageToken"]
    assert [task["id"] for task in oldest["tasks"]] == [first]
    assert not oldest.get("nextPageToken")
    assert [task["id"] for task in whole["tasks"]] == [second, first]
    assert [task["artifacts"][0]["parts"][0]["text"] for task in whole["tasks"]] == ["ferris", "ferris"]
    assert not any(task.get("artifacts") for task in (*newest["tasks"], *oldest["tasks"]))
    run.one("raised")  # a page token that no list gave


async def test_push_addresses_come_and_go(hub: HubProcess, alice: str, client_1: SdkClient) -> None:
    async with online(hub, TaskPeer) as agent:
        run = await client_1.watch(hub.url, agent.handle, alice, "push", hook=HOOK)
    task_id, created = run.one("answer").task_id, run.one("created").value
    assert (created["taskId"], created["url"]) == (task_id, HOOK)
    assert created["id"]
    assert (run.one("got").value["id"], run.one("got").value["url"]) == (created["id"], HOOK)
    assert [config["id"] for config in run.one("listed").value["configs"]] == [created["id"]]
    assert not run.one("left").value.get("configs")
    run.one("raised")  # it is gone
