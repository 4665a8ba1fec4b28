"""The program and the commands that connect/README.md prints for a venue work, exactly as they are printed."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent

from lab import ROOT
from lab.agents import publish
from lab.callers import bearer, web
from tests.agnt import venues
from tests.agnt.venues import NOTHING_COUNTED, Keeper, secret_of
from tests.agnt.wire import Program, add_venue, error_of, note_change, result_of
from tests.channel.agents import sql

WITHIN_S = 30
SLUG = "la-brisa"
PAGE = (ROOT / "connect" / "README.md").read_text()
SECTION = PAGE.partition("\n## A venue of a network\n")[2].partition("\n## ")[0]
GET_CONNECTOR = "curl -sfO $CLAWBRIDGE_HUB/connect.pyz"  # the first command of the page, which has no -s
COMMANDS, BOOK = (dedent(block) for block in re.findall(r"\n\n((?:    .*\n|\n(?=    ))+)", SECTION))
keeper, asker = venues.keeper, venues.asker


@asynccontextmanager
async def printed_venue(keeper: Keeper, secret: bytes, folder: Path) -> AsyncIterator[None]:
    """Run the commands of the page in a folder with its program; yields once the agent is connected."""
    (folder / "book.py").write_text(BOOK)
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "CLAWBRIDGE_HUB": keeper.hub.url,
        "CLAWBRIDGE_TOKEN": keeper.hub.mint(keeper.login, "channel"),
    }
    commands = f"{GET_CONNECTOR}\n{COMMANDS}".replace("SECRET=...", f"SECRET=hex:{secret.hex()}")
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
    sql(
        keeper.hub,
        "UPDATE agnt_venue SET agent_id = (SELECT id FROM agents_agent WHERE handle = ?) WHERE slug = ?",
        f"{keeper.login}/{SLUG}",
        SLUG,
    )
    note_change(keeper.hub, keeper.login)


async def test_the_program_of_the_page_takes_bookings(keeper: Keeper, asker: Program, tmp_path: Path) -> None:
    venue_id = add_venue(keeper.hub, keeper.login, SLUG, agent_name="agent-la-brisa")
    async with printed_venue(keeper, secret_of(keeper.hub, venue_id), tmp_path):
        await publish_session(keeper)
        booked = result_of(await asker.confirm(SLUG, party_size=4, time="19:30"))
        assert (booked["status"], booked["slot_time"], booked["party_size"]) == ("pending", "19:30", 4)
        assert keeper.bookings() == (1, 1)
        assert error_of(await asker.confirm(SLUG, party_size=9)) == "slot_unavailable"
        assert keeper.bookings() == (1, 1)
        assert keeper.breaker(SLUG) == NOTHING_COUNTED
