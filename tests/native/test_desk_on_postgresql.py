"""The desk once more, on PostgreSQL: in a pytest of its own, since settings are read once."""

import os
import subprocess
import sys

import pytest

from tests.homes import ROOT, GrownHomes

AGAIN = [
    "tests/native/test_desk.py",
    "tests/native/test_desk_audit.py",
    "tests/native/test_desk_publishing.py",
    "tests/native/test_desk_wizard.py",
]


@pytest.mark.grown
@pytest.mark.slow
def test_the_desk_is_the_same_on_postgresql(grown_homes: GrownHomes) -> None:
    servers = grown_homes.servers
    urls = {"DATABASE_URL": servers.postgres_url("desk"), "REDIS_URL": servers.redis_url(507)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *AGAIN]
    env = os.environ | {"KEEP_HOME": "1"} | urls
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
