"""Static files of the pages: compressed, not sent again while they are the same, and in parts as they are."""

import gzip
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from hub.static_files import CompressedStaticFiles
from lab import ROOT

pytestmark = pytest.mark.django_db  # the end of a request closes connections

SHEET = ROOT / "static/site.css"


def get(**headers: str) -> Any:
    return Client().get(
        "/static/site.css", headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def content(answer: Any) -> bytes:
    sent = b"".join(answer.streaming_content)
    answer.close()
    return sent


def test_a_file_is_compressed_for_those_who_take_it() -> None:
    small = get(accept_encoding="gzip, br")
    sent = content(small)
    assert (small.headers["Content-Encoding"], small.headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(sent) == SHEET.read_bytes()
    assert len(sent) < SHEET.stat().st_size / 2
    plain = get()
    assert "Content-Encoding" not in plain.headers
    assert content(plain) == SHEET.read_bytes()


def test_a_file_is_compressed_the_same_each_time() -> None:
    assert len({content(get(accept_encoding="gzip")) for _ in range(5)}) == 1


def test_a_file_that_is_known_is_not_sent_again() -> None:
    for encoding in ("gzip", "identity"):
        first = get(accept_encoding=encoding)
        assert content(first)
        assert get(accept_encoding=encoding, if_none_match=first.headers["ETag"]).status_code == 304


def test_a_part_of_a_file_is_sent_as_it_is() -> None:
    part = get(accept_encoding="gzip", range="bytes=0-9")
    assert (part.status_code, content(part)) == (206, SHEET.read_bytes()[:10])
    assert "Content-Encoding" not in part.headers


def test_files_are_looked_for_once_in_a_process() -> None:
    first, second = [CompressedStaticFiles(lambda request: HttpResponse("a page")) for _ in range(2)]
    assert second.files["/static/site.css"] is first.files["/static/site.css"]
    assert second(RequestFactory().get("/static/nothing.css")).content == b"a page"
