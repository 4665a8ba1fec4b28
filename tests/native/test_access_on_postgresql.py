"""Access, administration, pages and cards on PostgreSQL: in a pytest of its own, since settings are read once."""

import os
import subprocess
import sys

import pytest

from tests.homes import ROOT, GrownHomes

AGAIN = ["test_access.py", "test_rest_admin.py", "test_rest_agents.py"]
PAGES = ["test_directory_page.py", "test_agent_page.py"]
CARDS = ["test_signing.py", "test_catalog.py"]


@pytest.mark.grown
@pytest.mark.slow
def test_access_and_administration_are_the_same_on_postgresql(grown_homes: GrownHomes) -> None:
    servers = grown_homes.servers
    urls = {"DATABASE_URL": servers.postgres_url("native"), "REDIS_URL": servers.redis_url(503)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"tests/native/{name}" for name in AGAIN + PAGES + CARDS]
    env = os.environ | {"KEEP_HOME": "1"} | urls
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
