"""The official conformance suite of MCP, and the page that lists its scenarios."""

import asyncio
import json
import os
import re
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import ROOT
from tests.sdks.environments import ENVIRONMENTS, Missing, NotInstalled

PAGE = ROOT / "docs" / "reference" / "mcp-conformance.md"
PRELOADED = Path(__file__).with_name("conformance.mjs")
SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
NAME = re.compile(r"`([^`]+)`")
FAILED = {"FAILURE", "SKIPPED"}
ENDED_WITHIN_S = 240


@dataclass(frozen=True)
class Check:
    """One check of a scenario: its status and error as the suite reports them."""

    id: str
    status: str
    error: str


@asynccontextmanager
async def run_suite(*arguments: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The suite with these arguments; skip the test on a machine without node or the package."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS["js-conformance"].ready)
    except (Missing, NotInstalled) as missing:
        pytest.skip(str(missing))
    command = ["node", "--import", str(PRELOADED), str(SUITE), *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=STDOUT, cwd=folder, env=os.environ | {"NO_COLOR": "1"} | environment
    )
    try:
        async with asyncio.timeout(ENDED_WITHIN_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def list_scenarios(kind: str) -> list[str]:
    """The names of the suite's scenarios. `kind`: `server` or `authorization`."""
    async with run_suite("list", f"--{kind}") as suite:
        printed, _ = await suite.communicate()
    return re.findall(r"^  - (\S+)", printed.decode(), re.MULTILINE)


def read_checks(folder: Path, scenario: str) -> list[Check]:
    """The checks that the suite wrote into `folder` about a scenario."""
    found = [one for one in folder.glob("*/checks.json") if f"-{scenario}-2" in one.parent.name]
    assert len(found) == 1, f"{scenario}: {found}"
    checks = json.loads(found[0].read_text())
    return [Check(one["id"], one["status"], one.get("errorMessage", "")) for one in checks]


def read_rows(heading: str) -> list[tuple[list[str], list[str], str]]:
    """The rows of the table below a heading: the scenarios of the first column, its second and its last column."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert rows, f"no table below {heading!r}"
    return [(NAME.findall(row[0]), row[1].split(", "), row[-1]) for row in rows]
