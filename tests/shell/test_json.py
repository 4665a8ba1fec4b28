"""`--json` of the subcommands: one object, or one line for each."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from clawbridge.__main__ import clawbridge
from lab.callers import bearer, web
from lab.processes import free_port
from lab.waiting import eventually
from tests.shell.conftest import Shell

OF_OTHER_PROGRAMS = {"manage", "connect"}  # `connect` has it among its own options, of `manage` some commands


def test_every_subcommand_has_it() -> None:
    found = dict(subcommands(clawbridge.to_info_dict(click.Context(clawbridge))))
    assert {"groups list", "groups remove"} < found.keys()
    lacking = {name for name, one in found.items() if not any("--json" in each["opts"] for each in one["params"])}
    assert lacking == OF_OTHER_PROGRAMS


def subcommands(group: dict[str, Any], before: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each command that runs, with its name; of a group of commands, those in it."""
    for name, command in group["commands"].items():
        if "commands" in command:
            yield from subcommands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


async def test_a_hub_that_serves_prints_its_address_and_the_token_of_its_demo(tmp_path: Path) -> None:
    shell, port = Shell(tmp_path, "", ""), free_port()
    env = {"DATA_DIR": str(tmp_path / "data"), "PORT": str(port), "DEMO": "1", "DEV_LOGIN": "1"}
    serving = shell.start("serve", "--json", **env)
    try:

        async def printed() -> bool:
            return serving.output.endswith("\n")

        await eventually(printed, "the hub serves", within_s=60)
        said = json.loads(serving.output)
        assert said["url"] == f"http://127.0.0.1:{port}"
        async with web(said["url"], headers=bearer(said["token"])) as client:
            assert (await client.get("/api/v1/me")).status_code == 200
    finally:
        serving.process.send_signal(15)
        assert await serving.end() == 0
