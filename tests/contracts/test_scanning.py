"""The scanners that an administrator may set: a command, and a service of ICAP."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agents.transcript.file_types import FileRefused
from agents.transcript.scanning import NotScanned, scan
from kit.async_db import leave_thread

FINDS = "sh -c 'grep -q eicar && exit 1 || exit 0'"


def test_a_command_passes_and_refuses_files(settings: Any) -> None:
    settings.FILE_SCAN_COMMAND = FINDS
    scan(b"a plain text", "a.txt")
    with pytest.raises(FileRefused, match=r"^a\.txt: refused by the scanner of this hub$"):
        scan(b"this is eicar", "a.txt")


def test_other_requests_of_the_account_go_on_while_a_scanner_works(settings: Any) -> None:
    left: list[None] = []
    mark = leave_thread.set(lambda: left.append(None))
    try:
        scan(b"a plain text", "a.txt")
        assert not left
        settings.FILE_SCAN_COMMAND = "true"
        scan(b"a plain text", "a.txt")
        assert left
    finally:
        leave_thread.reset(mark)


def test_a_command_that_reads_nothing_may_pass_a_large_file(settings: Any) -> None:
    settings.FILE_SCAN_COMMAND = "true"
    scan(bytes(10_000_000), "a")


@pytest.mark.parametrize("command", ["/absent/scanner", "sh -c 'exit 2'", "'"], ids=["absent", "error", "no argv"])
def test_a_file_is_not_taken_while_the_scanner_fails(command: str, settings: Any) -> None:
    settings.FILE_SCAN_COMMAND = command
    with pytest.raises(NotScanned) as failed:
        scan(b"a plain text", "a.txt")
    assert (failed.value.status, failed.value.code) == (503, "unavailable")


def test_a_command_is_ended_with_all_that_it_started_when_it_takes_too_long(settings: Any) -> None:
    settings.FILE_SCAN_COMMAND = "sh -c 'sleep 60 & sleep 60'"
    settings.FILE_SCAN_WITHIN_S = 0.2
    began = time.monotonic()
    with pytest.raises(NotScanned):
        scan(b"a plain text", "a.txt")
    assert time.monotonic() - began < 20


@contextmanager
def icap(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A service that reads one request, and gives this answer."""
    server = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            request = b""
            while not request.endswith(b"\r\n0\r\n\r\n"):
                request += connection.recv(65536)
            heard.append(request)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"icap://127.0.0.1:{server.getsockname()[1]}/avscan", heard
    finally:
        thread.join(10)
        server.close()


def unchanged(data: bytes) -> bytes:
    head = b"ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body=19\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


TEXT = b"a plain text"


@pytest.mark.parametrize("answer", [b"ICAP/1.0 204 No Content\r\n\r\n", unchanged(TEXT)], ids=["204", "unchanged"])
def test_a_service_of_icap_passes_a_file(answer: bytes, settings: Any) -> None:
    with icap(answer) as (url, heard):
        settings.FILE_SCAN_ICAP = url
        scan(TEXT, "a.txt")
    assert heard[0].startswith(f"RESPMOD {url} ICAP/1.0\r\n".encode())
    assert b"Encapsulated: res-hdr=0, res-body=" in heard[0]
    assert b"\r\n\r\nc\r\na plain text\r\n0\r\n\r\n" in heard[0]


RES_BODY = b"ICAP/1.0 200 OK\r\nEncapsulated: res-hdr=0, res-body=26\r\n\r\n"
REFUSALS = {
    "header": b"ICAP/1.0 200 OK\r\nX-Infection-Found: Type=0; Threat=Eicar;\r\n\r\n",
    "page": RES_BODY + b"HTTP/1.1 403 Forbidden\r\n\r\n2\r\nno\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
def test_a_service_of_icap_refuses_a_file(answer: bytes, settings: Any) -> None:
    with icap(answer) as (url, _):
        settings.FILE_SCAN_ICAP = url
        with pytest.raises(FileRefused):
            scan(TEXT, "a.txt")


@pytest.mark.parametrize("answer", [b"", b"ICAP/1.0 404 No service\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_file_is_not_taken_while_the_service_fails(answer: bytes, settings: Any) -> None:
    with icap(answer) as (url, _):
        settings.FILE_SCAN_ICAP = url
        with pytest.raises(NotScanned):
            scan(TEXT, "a.txt")
    with pytest.raises(NotScanned):  # nothing listens any more
        scan(TEXT, "a.txt")
