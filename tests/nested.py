"""Tests of this process once more, on PostgreSQL: in a pytest of its own, since settings are read once."""

import os
import subprocess
import sys

import pytest

from lab import ROOT
from lab.hub_storage import DistributedStorages

WITHIN_S = 280
NESTED = [pytest.mark.distributed, pytest.mark.slow, pytest.mark.timeout(300)]  # what such tests are


def pass_on_postgresql(homes: DistributedStorages, redis: int, *selection: str) -> None:
    """Run what `selection` chooses on a database copied from the migrated one; fail as that pytest fails.

    `redis`: a database number that no other test has.
    """
    name = f"nested_{redis}"
    homes.create_database(f"test_{name}")  # the name that Django's test runner looks for
    env = os.environ | {
        "KEEP_HOME": "1",
        "DATABASE_URL": homes.servers.postgres_url(name),
        "REDIS_URL": homes.servers.redis_url(redis),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reuse-db", *selection]
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
