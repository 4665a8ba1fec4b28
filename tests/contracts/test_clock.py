"""The database's clock decides: a host whose clock is wrong by hours changes nothing that is compared."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab import ROOT
from lab.faults.kinds.clocks import set_clock, wrong_clock
from lab.hub_storage import MakeStorage, hub_env

LOOK = """
import json, os, time
from pathlib import Path
import django
django.setup()
from accounts.models import Credential, User
from accounts.tokens import get_or_create_local_user, mint
from kit.clock import db_now, approximate_now
from lab.faults.kinds.clocks import set_clock
before = approximate_now()
now = db_now()
minted = mint(get_or_create_local_user("ann"), Credential.Kind.SESSION, "x").credential
seen = {
    "before": (before - now).total_seconds(), "after": (approximate_now() - now).total_seconds(),
    "host": time.time() - now.timestamp(), "lives": (minted.expires_at - now).total_seconds(),
    "is_live": minted.is_live, "listed": Credential.objects.live().count(),
}
Credential.objects.filter(pk=minted.pk).revoke()
minted.refresh_from_db()
set_clock(Path(os.environ["CLOCK_OFFSET_FILE"]), 0)
set_back = (approximate_now() - now).total_seconds()
print(json.dumps(seen | {"revoked": (minted.revoked_at - now).total_seconds(), "set back": set_back}))
"""
NEAR_S = 30  # however busy the machine is; the clocks are hours apart
DAYS_30_S = 30 * 24 * 3600


def look(env: dict[str, str], clock: Path) -> dict[str, Any]:
    """The times that a program sees whose host has this clock."""
    env |= {"DJANGO_SETTINGS_MODULE": "hub.settings"} | wrong_clock(clock)
    done = subprocess.run([sys.executable, "-c", LOOK], env=env, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.distributed
@pytest.mark.slow
@pytest.mark.parametrize("offset_s", [90_000, -90_000])
def test_times_are_the_databases_whatever_the_host_says(
    make_storage: MakeStorage, tmp_path: Path, offset_s: int
) -> None:
    set_clock(tmp_path / "clock", offset_s)
    seen = look(hub_env(dict(make_storage("grown").env)), tmp_path / "clock")
    assert abs(seen["host"] - offset_s) < NEAR_S
    assert abs(seen["before"] - offset_s) < NEAR_S  # nothing was asked of the database yet
    assert abs(seen["after"]) < NEAR_S
    assert abs(seen["set back"]) < NEAR_S
    assert abs(seen["lives"] - DAYS_30_S) < NEAR_S
    assert abs(seen["revoked"]) < NEAR_S
    assert (seen["is_live"], seen["listed"]) == (True, 1)
