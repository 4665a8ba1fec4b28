"""The contract of pushes once more, on PostgreSQL: in a pytest of its own, since settings are read once."""

import os
import subprocess
import sys

import pytest

from tests.homes import ROOT, GrownHomes


@pytest.mark.grown
@pytest.mark.slow
def test_pushes_keep_their_contract_on_postgresql(grown_homes: GrownHomes) -> None:
    servers = grown_homes.servers
    env = os.environ | {
        "KEEP_HOME": "1",
        "DATABASE_URL": servers.postgres_url("pushes"),
        "REDIS_URL": servers.redis_url(506),
    }
    chosen = ["-q", "-m", "deliveries", "-p", "no:cacheprovider", "tests/pushes"]
    command = [sys.executable, "-m", "pytest", *chosen]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
