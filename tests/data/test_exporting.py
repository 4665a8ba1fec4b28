"""One account: everything of it to take away."""

import json
import tracemalloc
from base64 import b64decode
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts.models import Credential, User
from agents.models import Event
from agents.transcript import files
from hub.account_data.export import SECRET, SLICE_CHARS, pieces, stream
from hub.account_data.tables import EXPORTED
from kit.async_db import db_call
from tests.data.rows import OTHERS_WORD
from tests.native.rows import Person, api, browser, make_agent, make_session, make_turn, person

pytestmark = pytest.mark.django_db

EXPORT = "/api/v1/me/export"
NOT_EXPORTED = {
    "LogEntry",  # what staff did is the hub's record
    "Permission",
    "Group",
    "ContentType",
    "Session",  # Django's own table of sessions; it stays empty
    "LoginAttempt",  # a sign-in under way has no user yet
    "LoginCode",  # minutes old, and a hash
    "DeviceGrant",
    "Invitation",  # a day old, and a hash
    "GroupInvitation",  # a week old at most, and a hash
    "SigningKey",
    "ScimToken",  # the hub's, and a hash
    "Blob",  # its bytes are in the file
    "Process",
    "JobRun",
    "SendingPause",
    "Connection",
    "Attachment",
    "ChannelWatch",  # as long as a process has subscribers
    "SeenEnvelope",  # a day old at most; what it answered is the booking
    "SeenSignature",  # minutes old
    "Breaker",
    "Mail",  # sent within hours, and then gone; its link confirms an address
    "QueuedAsk",  # a minute's; what became of it is a turn
    "User_groups",
    "User_user_permissions",
    "Group_permissions",
}


def read(text: str) -> tuple[Any, list[Any], Any]:
    head, *rows, end = map(json.loads, text.splitlines())
    return head, rows, end


def test_everything_of_theirs_is_in_an_export_and_nothing_of_others(full_account: Person) -> None:
    text = "".join(pieces(full_account.user))
    head, rows, end = read(text)
    assert (head["format"], head["login"]) == ("clawbridge-export", full_account.user.login)
    assert end == {"end": True, "rows": len(rows)}
    assert {row["table"] for row in rows} == {part.name for part in EXPORTED}
    assert OTHERS_WORD not in text
    [file, other_file] = [row["row"] for row in rows if row["table"] == "file"]
    assert file["data"] == other_file["data"] == "Y2FuYXJ5b25l"


def test_no_secret_is_in_an_export(full_account: Person) -> None:
    text = "".join(pieces(full_account.user))
    grant = full_account.user.client_grants.get()
    secrets = {one.digest for one in Credential.objects.all()} | {
        grant.digest,
        grant.family_digest,
        "sealed",
        full_account.session,
        full_account.channel,
    }
    assert not [one for one in secrets if f'"{one}"' in text]
    assert all(name not in row["row"] for row in read(text)[1] for name in SECRET)


def test_every_table_is_exported_or_said_not_to_be() -> None:
    """A new table: put it into hub/account_data/tables.py, or here, with why."""
    exported = {part.model for part in EXPORTED}
    for model in apps.get_models(include_auto_created=True):
        is_left_out = model.__name__ in NOT_EXPORTED and (
            (model._meta.app_label, model.__name__) not in {("agents", "Session"), ("accounts", "Group")}
        )
        assert (model in exported) is not is_left_out, model


def test_an_export_is_for_sessions_over_rest_and_on_the_page(full_account: Person) -> None:
    answer: Any = api(full_account.session).get(EXPORT)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/x-ndjson"
    assert f'filename="{full_account.user.login}-' in answer["Content-Disposition"]
    assert api(full_account.app).get(EXPORT).status_code == 403
    assert api(full_account.channel).get(EXPORT).status_code == 401
    assert browser(None).get("/account/export").status_code == 302
    assert browser(full_account.session).get("/account/export").status_code == 200


async def read_async(user: User) -> str:
    return "".join([piece async for piece in stream(user)])


@pytest.mark.django_db(transaction=True)
async def test_the_stream_says_what_the_command_says(db: None) -> None:
    who = await db_call(lambda: person("alice"))()
    await db_call(lambda: make_turn(make_agent(who.user), who.user))()
    told = read(await read_async(who.user))
    assert told[1:] == (await db_call(lambda: read("".join(pieces(who.user))))())[1:]


@pytest.mark.django_db(transaction=True)
async def test_a_stream_comes_in_small_slices_and_holds_few_rows_of_great_size(db: None) -> None:
    who = await db_call(lambda: person("alice"))()
    await db_call(lambda: many_events(who.user, count=50, chars=200_000))()
    data = bytes(range(256)) * 30_000
    upload = files.Upload(filename="large", mime="text/plain", data=data)
    await db_call(lambda: files.store(make_session(who.user), who.user, upload))()
    tracemalloc.start()
    try:
        sizes = [len(piece) async for piece in stream(who.user)]
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 50 * 200_000
    assert max(sizes) < SLICE_CHARS + 270_000  # a slice of a file is 262,144
    assert peak_bytes < 6_000_000
    [file] = [row["row"] for row in read(await read_async(who.user))[1] if row["table"] == "file"]
    assert b64decode(file["data"]) == data


def many_events(owner: User, *, count: int, chars: int) -> None:
    payload = json.dumps({"text": "x" * chars})
    session, now = make_session(owner), timezone.now()
    for _ in range(count):
        Event.objects.create(session=session, kind="chat", type="note", payload=payload, ts=now)


def test_the_command_writes_the_same(full_account: Person, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("export_account", login=full_account.user.login.upper())
    assert read(capsys.readouterr().out)[1:] == read("".join(pieces(full_account.user)))[1:]
    with pytest.raises(CommandError, match="no user has the login unknown"):
        call_command("export_account", login="unknown")
