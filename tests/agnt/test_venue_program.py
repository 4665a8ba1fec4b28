"""The programs and commands that pages print for a venue and for a client work exactly as printed."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent, indent

import pytest

from clawbridge.connect import packing
from lab import ROOT
from lab.agents import publish
from lab.callers import bearer, web
from tests.agnt import venues
from tests.agnt.venues import NOTHING_COUNTED, Keeper, secret_of
from tests.agnt.wire import Program, add_venue, error_of, note_change, result_of
from tests.channel.agents import sql

WITHIN_S = 30
SLUG = "la-brisa"
PAGE = (ROOT / "clawbridge" / "connect" / "README.md").read_text()
SECTION = PAGE.partition("\n## A venue of a network\n")[2].partition("\n## ")[0]
GET_CONNECTOR = "curl -sfO $CLAWBRIDGE_HUB/connect.pyz"  # the first command of the page, which has no -s
HOWTO = (ROOT / "docs" / "howto" / "connect-an-agent.md").read_text()
OF_HOWTO = HOWTO.partition("\n### A venue of a network\n")[2].partition("\n### ")[0]
OF_CLIENT = PAGE.partition("\n## A client of AGNT\n")[2].partition("\n## ")[0]
(HOWTO_COMMANDS,), (CLIENT,), (COMMANDS, BOOK) = (
    [dedent(block) for block in re.findall(r"\n\n((?:    .*\n|\n(?=    ))+)", section)]
    for section in (OF_HOWTO, OF_CLIENT, SECTION)
)
keeper, asker = venues.keeper, venues.asker


@asynccontextmanager
async def printed_venue(keeper: Keeper, printed: str, secret: str, folder: Path) -> AsyncIterator[None]:
    """Run the commands of the page in a folder with its program; yields once the agent is connected."""
    (folder / "book.py").write_text(BOOK)
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "CLAWBRIDGE_HUB": keeper.hub.url,
        "HUB": keeper.hub.url,
        "CLAWBRIDGE_TOKEN": keeper.hub.mint(keeper.login, "channel"),
    }
    commands = re.sub(r"SECRET=(\.\.\.|…)", f"SECRET={secret}", f"{GET_CONNECTOR}\n{printed}")
    running = await asyncio.create_subprocess_exec(
        *("sh", "-ec", commands), cwd=folder, env=environment, stderr=PIPE, start_new_session=True
    )
    try:
        assert running.stderr is not None
        async with asyncio.timeout(WITHIN_S):
            line = (await running.stderr.readline()).decode()
        assert "connected as" in line, line
        yield
    finally:
        os.killpg(running.pid, signal.SIGTERM)
        await running.communicate()


async def publish_session(keeper: Keeper) -> None:
    """Publish the one session of the owner, and give the venue this agent."""
    token = keeper.hub.mint(keeper.login, "session")
    async with web(keeper.hub.url) as client:
        [session] = (await client.get("/api/v1/sessions", headers=bearer(token))).json()["items"]
    await publish(keeper.hub, token, session["id"], SLUG, access="private")
    given = "UPDATE agnt_venue SET agent_id = (SELECT id FROM agents_agent WHERE handle = ?) WHERE slug = ?"
    sql(keeper.hub, given, f"{keeper.login}/{SLUG}", SLUG)
    note_change(keeper.hub, keeper.login)


@pytest.mark.parametrize(
    "printed", [pytest.param(COMMANDS, id="readme"), pytest.param(HOWTO_COMMANDS, id="howto")]
)
async def test_the_program_of_the_page_takes_bookings(
    keeper: Keeper, asker: Program, tmp_path: Path, printed: str
) -> None:
    venue_id = add_venue(keeper.hub, keeper.login, SLUG, agent_name="agent-la-brisa")
    async with printed_venue(keeper, printed, secret_of(keeper.hub, venue_id).hex(), tmp_path):
        await publish_session(keeper)
        booked = result_of(await asker.confirm(SLUG, party_size=4, time="19:30"))
        assert (booked["status"], booked["slot_time"], booked["party_size"]) == ("pending", "19:30", 4)
        assert keeper.bookings() == (1, 1)
        refused = await asker.confirm(SLUG, party_size=9)
        assert error_of(refused) == "slot_unavailable"
        assert refused.json()["payload"]["error"]["message"] == "at most eight at a table"
        assert keeper.bookings() == (1, 1)
        assert keeper.breaker(SLUG) == NOTHING_COUNTED


async def test_the_client_of_the_page_books(keeper: Keeper, tmp_path: Path) -> None:
    add_venue(keeper.hub, keeper.login, SLUG)
    (tmp_path / packing.NAME).write_bytes(packing.archive())
    printed = CLIENT.replace("https://hub.example", keeper.hub.url).replace("agnt_live_...", keeper.key.token)
    printed = printed.replace('b"..."', f'bytes.fromhex("{keeper.key.secret}")')
    program = f"import asyncio\n\nasync def main():\n{indent(printed, '    ')}\n\nasyncio.run(main())\n"
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), cwd=tmp_path, env={"PYTHONPATH": packing.NAME}, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(WITHIN_S):
        out, errors = await running.communicate()
    assert "'status': 'pending'" in out.decode(), errors.decode()
    assert keeper.bookings() == (1, 1)
