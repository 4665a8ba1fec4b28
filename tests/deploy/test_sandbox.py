"""The units under systemd itself: the hub runs in their sandbox, and another program in it gets no further."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lab.hub_storage import MakeStorage
from lab.processes import free_port
from lab.waiting import until
from tests.attempts import Attempts
from tests.deploy.service_manager import Manager, reason_to_skip, running_units

WEB, WORKER, BEAT = "clawbridge-web@8787.service", "clawbridge-worker.service", "clawbridge-beat.service"
UNITS = (WEB, WORKER, BEAT)
OF_WEB = {"let a thread go behind others"}  # what only a web process does
PROBE = """\
ExecStart=
ExecStart=/opt/clawbridge/.venv/bin/python -B tests/deploy/sandbox_probe.py /var/lib/clawbridge
Restart=no
"""
WEAKER = """\
RestrictAddressFamilies=
MemoryDenyWriteExecute=no
PrivateTmp=no
ProtectProc=default
ProtectHome=no
UMask=0022
"""
REACHED_BY_WEAKER = {
    "open a netlink socket",
    "map memory that is written and executed",
    "make written memory executable",
    "see files of others in /var/tmp",
    "see the first process",
    "list /home",
    "leave files that others read",
}

MISSING = reason_to_skip()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=MISSING or "never"),
]


def probed(manager: Manager, unit: str) -> dict[str, dict[str, bool]]:
    until(lambda: "\n" in manager.output(unit), f"the result of the probe in {unit}", within_s=60)
    return dict(json.loads(manager.output(unit)))


def reached(found: dict[str, dict[str, bool]]) -> set[str]:
    return {name for name, succeeded in found["attempts"].items() if succeeded}


@pytest.mark.attack
def test_a_program_in_the_sandbox_gets_no_further(tmp_path: Path, attempts: Attempts) -> None:
    with running_units(tmp_path, {}, dict.fromkeys(UNITS, PROBE)) as manager:
        found = {unit: probed(manager, unit) for unit in UNITS}
    tried = sum(len(one["attempts"]) for one in found.values())
    ways_out = {unit: reached(one) for unit, one in found.items()}
    attempts.count("ways out of the sandbox of a systemd unit", tried, sum(map(len, ways_out.values())))
    assert not any(ways_out.values()), ways_out
    denied = {unit: {name for name, worked in one["needs"].items() if not worked} for unit, one in found.items()}
    assert denied == {WEB: set(), WORKER: OF_WEB, BEAT: OF_WEB}


@pytest.mark.deep
def test_the_probe_finds_what_a_weaker_unit_allows(tmp_path: Path) -> None:
    with running_units(tmp_path, {}, {BEAT: PROBE + WEAKER}) as manager:
        assert reached(probed(manager, BEAT)) >= REACHED_BY_WEAKER


def ask(url: str, token: str) -> str:
    """The demo agent's reply."""
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    call = {"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {"message": message}}
    agent = f"{url}/api/a2a/v1/agents/demo/echo"
    answer = httpx2.post(agent, json=call, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    result: dict[str, Any] = answer.json()["result"]
    return str(result["history"][-1]["parts"][0]["text"])


def first_token(manager: Manager, unit: str) -> str:
    pattern = re.compile(r"^  (cw_sess_\w+)$", re.MULTILINE)
    try:
        return until(lambda: pattern.search(manager.output(unit)), "the token", within_s=60)[1]
    except TimeoutError:
        raise AssertionError(manager.output(unit)) from None


def settings(port: int) -> dict[str, str]:
    return {"PUBLIC_URL": f"http://127.0.0.1:{port}", "DEV_LOGIN": "1", "DEMO": "1"}


def test_an_embedded_hub_runs_in_its_sandbox(tmp_path: Path) -> None:
    port = free_port()
    web = f"clawbridge-web@{port}.service"
    with running_units(tmp_path, settings(port), {web: ""}) as manager:
        assert ask(f"http://127.0.0.1:{port}", first_token(manager, web)) == "hello"


@pytest.mark.deep
@pytest.mark.distributed
@pytest.mark.timeout(300)
def test_a_hub_of_several_processes_runs_in_its_sandbox(tmp_path: Path, make_storage: MakeStorage) -> None:
    port, servers = free_port(), dict(make_storage("grown").env)
    web, url = f"clawbridge-web@{port}.service", f"http://127.0.0.1:{port}"
    del servers["DATA_DIR"]
    with running_units(tmp_path, settings(port) | servers, {web: "", WORKER: "", BEAT: ""}) as manager:
        assert ask(url, first_token(manager, web)) == "hello"

        def has_swept() -> bool:
            return bool(
                re.search(r"^clawbridge_sweep_age_seconds \d", httpx2.get(f"{url}/metrics").text, re.MULTILINE)
            )

        until(has_swept, "a sweep by the worker", within_s=60)
