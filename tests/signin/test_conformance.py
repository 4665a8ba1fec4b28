"""The authorization server suite of MCP's official conformance suite, its user played by a browser."""

import json
from pathlib import Path

import httpx
import pytest

from lab.processes import free_port
from tests.mcp.conformance import read_checks, run_suite
from tests.signin.clients import Browser
from tests.signin.test_registered_clients import allow, register


@pytest.mark.deep
async def test_the_suite_discovers_the_server_and_gets_a_token(browser: Browser, tmp_path: Path) -> None:
    browser.sign_in("erin")
    url, port = browser.hub.url, free_port()
    back = f"http://127.0.0.1:{port}/callback"
    client_id = register(browser, back).json()["client_id"]
    options = ["--url", url, "--client-id", client_id, "--port", str(port), "--resource", f"{url}/mcp"]
    async with run_suite("authorization", *options, "-o", str(tmp_path)) as suite:
        assert suite.stdout is not None
        printed = b""
        while not (line := await suite.stdout.readline()).startswith(f"{url}/consent?".encode()):
            printed += line
            assert line, printed.decode()
        told = allow(browser, line.decode().strip(), back=back)
        async with httpx.AsyncClient(trust_env=False) as followed:
            assert (await followed.get(back, params=told)).status_code == 200
        await suite.communicate()
        assert suite.returncode == 0
    statuses = {
        check.id: check.status
        for scenario in ("authorization-server-metadata-endpoint", "authorization-code-grant")
        for check in read_checks(tmp_path, scenario)
    }
    assert statuses == {
        "authorization-server-metadata": "SUCCESS",
        "authorization-server-metadata-cimd": "WARNING",  # no client metadata documents
        "authorization-code-grant": "SUCCESS",
    }, json.dumps(statuses)
