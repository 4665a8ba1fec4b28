"""What is kept, what goes and what staff did, on PostgreSQL: in a pytest of its own, settings are read once."""

import os
import subprocess
import sys

import pytest

from tests.homes import ROOT, GrownHomes

AGAIN = ["test_retention.py", "test_exporting.py", "test_erasing.py", "test_acts.py"]


@pytest.mark.grown
@pytest.mark.timeout(300)
@pytest.mark.slow
def test_what_is_kept_and_what_goes_is_the_same_on_postgresql(grown_homes: GrownHomes) -> None:
    servers = grown_homes.servers
    urls = {"DATABASE_URL": servers.postgres_url("kept"), "REDIS_URL": servers.redis_url(502)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [f"tests/data/{name}" for name in AGAIN]
    env = os.environ | {"KEEP_HOME": "1"} | urls
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
