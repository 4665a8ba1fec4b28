"""A hub that is restarted: both clients come back by themselves."""

from lab.channel_agent import ChannelAgent
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.operators.operator import Operator

COMES_BACK = {1001, 1006, 1011, 1012}


async def test_a_drained_hub_is_come_back_to(start_hub: StartHub, make_storage: MakeStorage) -> None:
    hub = start_hub(make_storage("embedded"))
    agent = ChannelAgent(hub.url, hub.mint("owner", "channel"))
    async with Operator(hub.url, hub.mint("owner", "session")) as cli:
        await agent.connect()
        session_id = agent.session_id
        await cli.subscribe(session_id)
        hub.terminate()
        await agent.closed.wait()
        await cli.closed.wait()
        assert cli.socket.close_code in COMES_BACK
        assert cli.of("error") == []
        byes = [one for one in agent.frames if one["type"] == "bye"]
        assert all(one["retry"] is True for one in byes)
        assert agent.socket.close_code in COMES_BACK
    assert await hub.exit_code() == 0
    hub.serve(0)
    await agent.connect()
    assert agent.session_id == session_id
    async with Operator(hub.url, hub.mint("owner", "session")) as cli:
        await cli.subscribe(session_id)
    await agent.leave()
