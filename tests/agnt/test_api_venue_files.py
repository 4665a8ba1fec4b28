"""Venues as CSV over REST: files that come back unchanged, reports of bad rows, all rows or none."""

import asyncio
import csv
import io
import tracemalloc
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient

from agnt.models import Network, Venue
from agnt.service.networks import get_or_create_network
from agnt.service.venues.editing import create_venue
from agnt.service.venues.file import COLUMNS, MAX_ROWS, export_venues
from agnt.service.venues.importing import import_venues
from tests.agnt.network_rows import make_venue
from tests.native.rows import Person, api, make_agent

IMPORT, EXPORT = "/api/v1/network/venues/import", "/api/v1/network/venues/export"
HEAD = "slug,name,category,agent_id\n"


def send(person: Person, text: str | bytes, **fields: Any) -> Any:
    data = text.encode() if isinstance(text, str) else text
    form = {"file": SimpleUploadedFile("venues.csv", data, "text/csv"), **fields}
    return api(person.session).post(IMPORT, form, format="multipart")


def bad_rows(answer: Any) -> list[tuple[int, str]]:
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_rows"), answer.content
    return [(one["line"], one["field"]) for one in answer.json()["bad"]]


def slugs(person: Person) -> list[str]:
    return sorted(Venue.objects.filter(network__owner=person.user).values_list("slug", flat=True))


def exported(person: Person) -> str:
    return "".join(export_venues(Network.objects.get(owner=person.user)))


def test_rows_make_and_change_venues_and_others_stay(alice: Person) -> None:
    kept = make_venue(alice.user, "kept", city="Ubud")
    old = make_venue(alice.user, "OLD", city="Ubud", category="bar")
    done = send(alice, HEAD + "old,Old One,cafe,\n\nnew,New One,,agent_2\n")
    assert done.json() == {"created": 1, "changed": 1, "unchanged": 0, "badRows": 0, "bad": []}
    for row in (kept, old):
        row.refresh_from_db()
    assert (kept.name, kept.city) == ("Kept", "Ubud")
    assert (old.slug, old.name, old.category, old.city) == ("old", "Old One", "cafe", "Ubud")
    new = Venue.objects.get(slug="new")
    assert (new.agent_name, new.is_active, f"{new.referral_fee_pct:.2f}") == ("agent_2", True, "7.00")
    assert Network.objects.get().venues_version == 1
    again = send(alice, HEAD + "old,Old One,cafe,\nnew,New One,,agent_2\n")
    assert (again.json()["unchanged"], Network.objects.get().venues_version) == (2, 1)


def test_a_file_with_bad_rows_is_refused_whole_with_a_report_of_each(alice: Person) -> None:
    make_venue(alice.user, "there", agent_name="taken")
    text = HEAD + (
        "good,Good,,\n"
        "with blank,Bad slug,,\n"
        ",,,\n"
        "noname,,,\n"
        '"multi","two\nlines",,\n'
        "short,Short\n"
        "GOOD,Twice,,\n"
        "other,Other,,taken\n"
    )
    answer = send(alice, text)
    assert bad_rows(answer) == [(3, "slug"), (5, "name"), (6, "name"), (8, "row"), (9, "slug")]
    assert answer.json()["badRows"] == 5
    assert "line 2" in answer.json()["bad"][-1]["reason"]
    assert slugs(alice) == ["there"]
    taken = send(alice, HEAD + "good,Good,,\nother,Other,,taken\n")
    assert bad_rows(taken) == [(3, "agent_id")]
    assert slugs(alice) == ["there"]


def test_rows_that_are_right_are_taken_when_the_caller_wants_that(alice: Person) -> None:
    make_venue(alice.user, "there", agent_name="taken")
    text = HEAD + "good,Good,,\nbad slug,Bad,,\nother,Other,,taken\n"
    done = send(alice, text, skipBadRows="true").json()
    assert (done["created"], done["badRows"]) == (1, 2)
    assert [(one["line"], one["field"]) for one in done["bad"]] == [(3, "slug"), (4, "agent_id")]
    assert slugs(alice) == ["good", "there"]


def test_a_cell_that_is_wrong_is_named_by_line_and_column(alice: Person, bob: Person) -> None:
    """Also those that only a file can hold; `test_api_venues.py` has the limits of each field."""
    make_agent(bob.user, "hidden", access="private")
    for column, cell in (
        ("referral_fee_pct", "seven"),
        ("referral_fee_pct", "1e999999999"),
        ("priority_rank", "9" * 5000),
        ("priority_rank", "²"),
        ("active", "perhaps"),
        ("agent", "@bob/hidden"),
        ("url", "https://10.0.0.1/"),
        ("tags", ";".join(map(str, range(21)))),
        ("city", "a\0b"),
    ):
        answer = send(alice, f'slug,name,{column}\nfine,Fine,\none,One,"{cell}"\n')
        assert bad_rows(answer) == [(3, column)]
    assert slugs(alice) == []


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", None),
        (b"slug\n", 1),
        (b"slug,name,colour\n", 1),
        (b"slug,name,Name\n", 1),
        (b"slug;name\n", 1),
        (b"PK\x03\x04\xff\xfe", 1),
        ("slug,name\none,Caf\xe9\n".encode("latin-1"), None),
        (b'slug,name\none,"open\n', None),
        (b'slug,name\none,"a"b\n', 2),
        (b"slug,name\none," + b"x" * 200_000 + b"\n", 2),
        (b"slug,name\n" + b"a,b\n" * (MAX_ROWS + 1), MAX_ROWS + 2),
    ],
    ids=["empty", "missing", "unknown", "twice", "semicolon", "zip", "latin", "open", "quote", "long", "rows"],
)
def test_what_is_no_file_of_venues_is_a_400_that_says_where(alice: Person, data: bytes, line: int | None) -> None:
    answer = send(alice, data)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed"), answer.content
    assert answer.json()["message"].startswith("file: " + (f"line {line}: " if line else ""))
    assert slugs(alice) == []


def test_other_parts_of_the_form_are_refused(alice: Person) -> None:
    assert send(alice, HEAD, overwrite="yes").status_code == 400
    assert api(alice.session).post(IMPORT, {"file": "text"}, format="multipart").status_code == 400
    assert api(alice.session).post(IMPORT, {"file": "text"}, format="json").status_code == 415


def test_the_byte_order_mark_and_the_line_ends_of_spreadsheets_are_read(alice: Person) -> None:
    assert send(alice, b"\xef\xbb\xbfSlug , NAME\r\none,One\r\n").json()["created"] == 1
    assert send(alice, b"slug,name\rtwo,Two\r").json()["created"] == 1
    assert slugs(alice) == ["one", "two"]


def test_an_export_comes_back_unchanged_and_no_cell_of_it_runs(alice: Person) -> None:
    make_agent(alice.user, "helper")
    network = get_or_create_network(alice.user)
    text = {"name": "=1+1", "description": 'a "b",\n-c', "category": "'=x", "city": "@city", "area": "'"}
    create_venue(network, {"slug": "one", **text, "tags": ["a", "-b"], "priority_rank": -5, "is_active": False})
    create_venue(network, {"slug": "two", "name": "+Two", "url": "https://venue.example/a2a"})
    agent = alice.user.agents.get()
    create_venue(network, {"slug": "three", "name": "Three", "agent": agent, "agent_name": "agent_3"})
    file = exported(alice)
    rows = list(csv.DictReader(io.StringIO(file)))
    assert list(rows[0]) == list(COLUMNS)
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "@", "\t")]
    assert (rows[0]["name"], rows[0]["category"], rows[2]["agent"]) == ("'=1+1", "''=x", "'@alice/helper")
    assert send(alice, file).json()["unchanged"] == 3
    Venue.objects.all().delete()
    assert send(alice, file).json()["created"] == 3
    assert exported(alice) == file


def test_agent_ids_can_be_swapped_by_a_file(alice: Person) -> None:
    make_venue(alice.user, "one", agent_name="a")
    make_venue(alice.user, "two", agent_name="b")
    assert send(alice, HEAD + "one,One,,b\ntwo,Two,,a\n").json()["changed"] == 2
    assert dict(Venue.objects.values_list("slug", "agent_name")) == {"one": "b", "two": "a"}
    assert bad_rows(send(alice, HEAD + "one,One,,x\nthree,Three,,x\n")) == [(3, "agent_id")]


def test_a_row_that_takes_the_name_of_a_row_that_is_left_out_is_left_out(alice: Person) -> None:
    for slug in ("one", "two", "three"):
        make_venue(alice.user, slug, agent_name=slug)
    text = HEAD + "one,One,,three\ntwo,Two,,one\n"
    assert bad_rows(send(alice, text)) == [(2, "agent_id"), (3, "agent_id")]
    assert send(alice, text, skipBadRows="true").json()["badRows"] == 2
    assert {slug == name for slug, name in Venue.objects.values_list("slug", "agent_name")} == {True}


def test_a_column_for_the_agent_alone_does_not_give_a_venue_both(alice: Person) -> None:
    make_agent(alice.user, "helper")
    make_venue(alice.user, "one", url="https://venue.example/")
    assert bad_rows(send(alice, "slug,name,agent\none,One,@alice/helper\n")) == [(2, "agent")]
    assert send(alice, "slug,name,agent,url\none,One,@alice/helper,\n").json()["changed"] == 1


def test_a_file_does_not_pass_the_limit_of_the_network(alice: Person, settings: Any) -> None:
    settings.VENUES_PER_NETWORK = 2
    make_venue(alice.user, "one")
    answer = send(alice, HEAD + "two,Two,,\nthree,Three,,\n")
    assert (answer.status_code, answer.json()["error"]) == (429, "quota_exceeded")
    assert slugs(alice) == ["one"]
    assert send(alice, HEAD + "one,One,,\ntwo,Two,,\n").status_code == 200


def test_a_file_changes_the_network_of_its_sender_alone(alice: Person, bob: Person) -> None:
    venue = make_venue(bob.user, "one")
    assert send(alice, HEAD + "one,Hers,,\n").json()["created"] == 1
    venue.refresh_from_db()
    assert (venue.name, slugs(bob)) == ("One", ["one"])


def test_many_bad_rows_are_counted_and_the_first_are_named(alice: Person) -> None:
    answer = send(alice, HEAD + "bad slug,Bad,,\n" * 1000)
    assert answer.json()["badRows"] == 1000
    assert [one["line"] for one in answer.json()["bad"]] == list(range(2, 202))


def rows_of(count: int, rank: int) -> io.BytesIO:
    lines = (f"v-{number},Venue {number},{'x' * 1000},{rank}\n" for number in range(count))
    return io.BytesIO(("slug,name,description,priority_rank\n" + "".join(lines)).encode())


@pytest.mark.slow
def test_a_large_file_takes_little_memory(alice: Person) -> None:
    network, count = get_or_create_network(alice.user), 2000
    file = rows_of(count, rank=1)
    assert import_venues(network, rows_of(count, rank=0)).created == count
    tracemalloc.start(1)
    try:
        assert import_venues(network, file).changed == count
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000, "about 0.3 KiB for each row, and 500 rows whole"


@pytest.mark.django_db(transaction=True)
def test_the_export_is_a_file_to_keep(alice: Person, bob: Person) -> None:
    make_venue(alice.user, "one")
    with asyncio.Runner() as loop:
        head, body = loop.run(download(alice))
        _, empty = loop.run(download(bob))
    assert head["Content-Type"] == "text/csv; charset=utf-8"
    assert head["Content-Disposition"] == 'attachment; filename="venues.csv"'
    assert [row["slug"] for row in csv.DictReader(io.StringIO(body))] == ["one"]
    assert empty.strip() == ",".join(COLUMNS)


async def download(person: Person) -> tuple[Any, str]:
    """The export, as the hub serves it over ASGI."""
    answer = await AsyncClient().get(EXPORT, headers={"Authorization": f"Bearer {person.session}"})
    assert answer.status_code == 200
    return answer, b"".join([chunk async for chunk in answer.streaming_content]).decode()
