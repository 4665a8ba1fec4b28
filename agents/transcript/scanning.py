"""Asks an administrator's scanner about each file before the hub stores it: a command, or a service of ICAP.

A scanner that fails, or takes too long, keeps the file out: a file that was not checked is not stored.
"""

import logging
import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from agents import settings
from agents.transcript.file_types import FileRefused
from kit.asgi import RETRY_SOON, RequestRefused
from kit.async_db import release_before_waiting

logger = logging.getLogger(__name__)

ICAP_PORT = 1344
NOT_SCANNED = "the file could not be checked, and was not stored: try again later, or tell the hub's operator"
REFUSED = "{name}: refused by the scanner of this hub"
MAX_HEAD_BYTES = 65_536
FOUND = (b"x-infection-found:", b"x-virus-id:", b"x-violations-found:")
NO_CONTENT = b"ICAP/1.0 204"


class NotScanned(RequestRefused):
    """The scanner did not answer, or not in time; the file was not stored."""

    def __init__(self) -> None:
        super().__init__(503, "unavailable", NOT_SCANNED, RETRY_SOON)


def is_on() -> bool:
    """True if files are scanned."""
    return bool(settings.FILE_SCAN_COMMAND or settings.FILE_SCAN_ICAP)


def scan(data: bytes, name: str) -> None:
    """Ask each scanner that is set. Call it outside of a transaction: a scanner may take as long as it is allowed.

    Raises:
        FileRefused: a scanner refuses the file.
        NotScanned: a scanner failed, or did not answer in time.
    """
    if not is_on():
        return
    release_before_waiting()
    try:
        is_clean = not settings.FILE_SCAN_COMMAND or _passes_command(shlex.split(settings.FILE_SCAN_COMMAND), data)
        is_clean = is_clean and (not settings.FILE_SCAN_ICAP or _passes_icap(settings.FILE_SCAN_ICAP, data))
    except (OSError, ValueError, subprocess.SubprocessError) as failure:
        logger.error("scan.failed", extra={"failure": type(failure).__name__})
        raise NotScanned from None
    if not is_clean:
        logger.warning("scan.refused", extra={"bytes": len(data)})
        raise FileRefused(REFUSED.format(name=name))


def _passes_command(argv: Sequence[str], data: bytes) -> bool:
    """Run the command with the file as standard input; 0 passes the file, 1 refuses it.

    Raises:
        ValueError: another exit code. TimeoutExpired: the command was ended. OSError: it did not start.
    """
    quiet = subprocess.DEVNULL
    with subprocess.Popen(  # noqa: S603  the administrator's own command; no part of it comes from a caller
        argv, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, cwd="/", start_new_session=True
    ) as process:
        try:
            process.communicate(data, timeout=settings.FILE_SCAN_WITHIN_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # what the command started, too
            raise
    if process.returncode not in (0, 1):
        raise ValueError(f"exit code {process.returncode}")
    return process.returncode == 0


def _passes_icap(url: str, data: bytes) -> bool:
    """Send the file as the answer of a web server (RESPMOD of RFC 3507): the service passes it, or changes it.

    Raises:
        ValueError: the service answered with an error, or not in ICAP. OSError: it is away, or too slow.
    """
    service = urlsplit(url)
    deadline = time.monotonic() + settings.FILE_SCAN_WITHIN_S
    address = service.hostname or "", service.port or ICAP_PORT
    with socket.create_connection(address, timeout=settings.FILE_SCAN_WITHIN_S) as connection:
        connection.sendall(_icap_request(service, data))
        answer = _read_all(connection, deadline, at_most=len(data) + MAX_HEAD_BYTES)
    head, _, encapsulated = answer.partition(b"\r\n\r\n")
    version, _, rest = head.partition(b" ")
    if not version.startswith(b"ICAP/1.") or rest[:3] not in (b"200", b"204"):
        raise ValueError("no answer of ICAP that says whether the file is clean")
    if any(line.startswith(FOUND) for line in head.lower().split(b"\r\n")):
        return False
    return rest.startswith(b"204") or _body_of(encapsulated) == data


def _icap_request(service: SplitResult, data: bytes) -> bytes:
    """A RESPMOD request, whose body is the file in one chunk."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % len(data)
    lines = [
        f"RESPMOD {service.geturl()} ICAP/1.0",
        f"Host: {service.netloc}",
        "Allow: 204",
        "Connection: close",
        f"Encapsulated: res-hdr=0, res-body={len(answer)}",
    ]
    head = "\r\n".join([*lines, "", ""]).encode("ascii", "ignore")
    return b"".join([head, answer, b"%x\r\n" % len(data), data, b"\r\n0\r\n\r\n"])


def _read_all(connection: socket.socket, deadline: float, at_most: int) -> bytes:
    """The answer, up to the end of the connection, or until it is too long to have the file unchanged."""
    answer = bytearray()
    while len(answer) <= at_most:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        if not (piece := connection.recv(MAX_HEAD_BYTES)):
            break
        answer += piece
        if answer.startswith(NO_CONTENT) and b"\r\n\r\n" in answer:  # some services keep the connection open
            break
    return bytes(answer)


def _body_of(encapsulated: bytes) -> bytes:
    """The body of an encapsulated answer, without the lines of its chunks."""
    left, body = encapsulated.partition(b"\r\n\r\n")[2], b""
    while left:
        length, _, left = left.partition(b"\r\n")
        size = int(length.partition(b";")[0] or b"0", 16)
        if size <= 0:
            break
        body, left = body + left[:size], left[size + 2 :]
    return body
