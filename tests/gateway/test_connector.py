"""`connect --gateway`, and the Python client of the gateway."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clawbridge.connect.__main__ import main
from clawbridge.connect.gateway_client import GatewayClient, GatewayError
from lab.hub_process import HubProcess
from tests.gateway.client import team

ROOT = Path(__file__).parents[2]
WITHIN_S = 30


@asynccontextmanager
async def connector(hub: HubProcess, *options: str, owner: str, name: str) -> AsyncIterator[Process]:
    """A running `python -m clawbridge.connect --gateway`, once it has its seat."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clawbridge.connect", "--gateway", "--name", name, *options),
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "CLAWBRIDGE_HUB": hub.url,
            "CLAWBRIDGE_TOKEN": hub.mint(owner, "channel"),
        },
        stderr=PIPE,
    )
    try:
        await read_line(process, f"connected as {name}")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def read_line(process: Process, wanted: str) -> str:
    """The first line of standard error that holds the text."""
    assert process.stderr is not None
    async with asyncio.timeout(WITHIN_S):
        seen = ""
        while wanted not in (line := (await process.stderr.readline()).decode()):
            seen += line
            assert line, seen
    return line


async def test_the_connector_answers_for_a_seat(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("connector", "session")
    script = 'read text; case "$text" in fail*) echo no >&2; exit 3;; esac; echo "$CLAWBRIDGE_ASKER: $text"'
    async with (
        connector(embedded_hub, "--exec", "--", "sh", "-c", script, owner="connector", name="shell") as process,
        GatewayClient(embedded_hub.url, token) as client,
    ):
        assert client.agents == ["shell"]
        assert await client.ask("shell", "hello\n") == "connector: hello\n"
        with pytest.raises(GatewayError, match="command failed with exit status 3\nno") as caught:
            await client.ask("shell", "fail\n")
        assert (caught.value.code, caught.value.name) == (3004, "AGENT_ERROR")
        with pytest.raises(GatewayError, match="no services"):  # at once, and not when the time is up
            await client.request("add", {"numbers": [1]}, agent="shell")
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WITHIN_S):
            assert await process.wait() == 0


async def test_a_newer_connector_has_the_seat(embedded_hub: HubProcess) -> None:
    async with (
        connector(embedded_hub, "--echo", owner="newer", name="one") as old,
        team(embedded_hub, "newer", "one"),
        asyncio.timeout(WITHIN_S),
    ):
        assert await old.wait() == 3


def test_a_connector_with_a_wrong_token_ends(embedded_hub: HubProcess, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--hub", embedded_hub.url, "--token", "ck_live_wrong")
    assert main([*place, "--gateway", "--name", "one", "--echo"]) == 2
    assert "the gateway refused the token" in capsys.readouterr().err


async def test_two_clients_of_the_library_talk(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("library", "channel")

    async def serve(client: GatewayClient) -> None:
        async for frame in client:
            if frame.text == "refuse":
                await client.fail(frame, "not today")
            elif frame.type == "request":
                await client.send("response", {"result": frame.content["params"]}, metadata=frame.metadata)
            elif frame.wants_response:
                await client.reply(frame, {"heard": frame.text, "from": frame.sender})

    async with (
        GatewayClient(embedded_hub.url, token, name="alpha") as alpha,
        GatewayClient(embedded_hub.url, token, name="beta", wait_s=5) as beta,
    ):
        serving = asyncio.create_task(serve(alpha))
        assert await beta.ask("alpha", "hi") == {"heard": "hi", "from": "beta"}
        assert await beta.request("repeat", {"what": "this"}, agent="alpha") == {"what": "this"}
        with pytest.raises(GatewayError, match="not today"):
            await beta.ask("alpha", "refuse")
        with pytest.raises(GatewayError) as caught:
            await beta.ask("absent", "hi")
        assert caught.value.code == 3001
        await alpha.tell("beta", "news")
        async with asyncio.timeout(WITHIN_S):
            told = await anext(aiter(beta))
        assert (told.type, told.text, told.sender, told.wants_response) == ("message", "news", "alpha", False)
        names = {one["name"] for one in (await beta.request("agents.list"))["agents"]}
        assert names == {"alpha", "beta"}
    async with asyncio.timeout(WITHIN_S):
        await serving  # the iteration ends with the connection


async def test_a_client_of_the_library_knows_the_state_of_its_connection(embedded_hub: HubProcess) -> None:
    client = GatewayClient(embedded_hub.url, embedded_hub.mint("library", "session"))
    states = [client.state]
    entering = asyncio.create_task(client.__aenter__())
    await asyncio.sleep(0)
    states.append(client.state)
    await entering
    states.append(client.state)
    await client.__aexit__()
    assert [*states, client.state] == [3, 0, 1, 3]
    assert [one.name for one in states] == ["CLOSED", "CONNECTING", "OPEN"]


async def test_a_client_with_a_wrong_address_or_token_is_told(embedded_hub: HubProcess) -> None:
    with pytest.raises(ValueError, match="want an address"):
        GatewayClient("hub")
    with pytest.raises(GatewayError) as caught:
        async with GatewayClient(embedded_hub.url, "ck_live_wrong"):
            pass
    assert caught.value.code == 5002
