"""Rows that tests put into a running hub's database, from a process that is started once for each hub."""

import atexit
import json
import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from lab import ROOT
from lab.hub_process import HubProcess

SCRIPT = """
import json, sys
import django
django.setup()
from django.db import connection
from tests.operators import rows
print("ready", flush=True)
for line in sys.stdin:
    for name, arguments in json.loads(line):
        getattr(rows, "_" + name)(**arguments)
    connection.close()
    print("done", flush=True)
"""
_processes: dict[str, subprocess.Popen[str]] = {}  # by DATA_DIR


def put(hub: HubProcess, *wanted: tuple[str, dict[str, Any]]) -> None:
    """Run some of the functions below against a hub's database, by name without the underscore."""
    start(hub)
    process = _processes[str(hub.home.folder)]
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(wanted) + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n", process.communicate()[1]


def start(hub: HubProcess) -> None:
    """Start the process of a hub, unless it runs, and wait until it is ready.

    Before a test connects agents: on a busy machine it takes seconds, in which they could answer no ping.
    """
    data_dir = str(hub.home.folder)
    if data_dir not in _processes:
        _processes[data_dir] = process = _start(hub)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]


@pytest.fixture(autouse=True)
def rows_process(request: pytest.FixtureRequest) -> None:
    """See `start`; for the modules that import it."""
    for name in ("hub", "embedded_hub"):
        if name in request.fixturenames:
            start(request.getfixturevalue(name))


def _start(hub: HubProcess) -> subprocess.Popen[str]:
    env = os.environ | hub._env | {"DJANGO_SETTINGS_MODULE": "hub.settings"}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.Popen(command, env=env, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    atexit.register(process.kill)
    return process


def share(hub: HubProcess, session_id: str | None, **roles: str) -> None:
    """Lend a session to users, `login="role"`."""
    put(hub, *[("share", {"session": session_id, "login": login, "role": role}) for login, role in roles.items()])


def _share(*, session: str, login: str, role: str) -> None:
    from accounts.tokens import get_or_create_local_user  # noqa: PLC0415  needs a set-up Django
    from agents.models import Session, Share  # noqa: PLC0415

    row, user = Session.objects.get(public_id=session), get_or_create_local_user(login)
    Share.objects.update_or_create(session=row, user=user, defaults={"role": role, "shared_by": row.owner})


def _archive(*, session: str) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from agents.models import Session  # noqa: PLC0415

    Session.objects.filter(public_id=session).update(archived_at=timezone.now())


def _request_permission(*, session: str, request_id: str) -> None:
    from django.utils import timezone  # noqa: PLC0415

    from agents.models import PermissionRequest, Session  # noqa: PLC0415

    PermissionRequest.objects.create(
        session=Session.objects.get(public_id=session),
        request_id=request_id,
        tool="Bash",
        input_preview="ls",
        expires_at=timezone.now() + timedelta(minutes=10),
    )


def _revoke(*, login: str) -> None:
    from accounts.models import Credential  # noqa: PLC0415

    Credential.objects.filter(user__login=login).revoke()


def _suspend(*, login: str) -> None:
    from accounts.models import User  # noqa: PLC0415

    User.objects.filter(login=login).update(is_active=False)


def _sessions(*, login: str, count: int) -> None:
    from accounts.tokens import get_or_create_local_user  # noqa: PLC0415
    from agents.models import Session  # noqa: PLC0415

    owner = get_or_create_local_user(login)
    Session.objects.bulk_create(Session(owner=owner, routing_name=f"s-{number}") for number in range(count))
