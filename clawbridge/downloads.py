"""Files that agents name by an address: fetched from any server, without a token."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx2

from clawbridge import VERSION
from clawbridge.client import CONNECT_WITHIN_S, SILENT_FOR_S
from clawbridge.terminal import CommandFailure, ExitCode, one_line

MAX_DOWNLOAD_BYTES = 4 * 1024**3


@contextmanager
def download(url: str) -> Generator[tuple[int | None, Iterator[bytes]]]:
    """A file that an agent names by its address: its size, if known, and its pieces. No token is sent.

    Raises:
        Failure: it is no address of the web, or the file does not arrive, or is over MAX_DOWNLOAD_BYTES.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise CommandFailure(ExitCode.UNREACHABLE, f"{one_line(url)} is not downloaded: want http or https")
    timeout = httpx2.Timeout(SILENT_FOR_S, connect=CONNECT_WITHIN_S)
    headers = {"User-Agent": f"clawbridge/{VERSION}"}
    try:
        with httpx2.stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
            if not response.is_success:
                raise CommandFailure(ExitCode.UNREACHABLE, f"{one_line(url)} answered HTTP {response.status_code}")
            length = response.headers.get("Content-Length", "")
            is_plain = length.isdecimal() and "Content-Encoding" not in response.headers
            yield int(length) if is_plain else None, bounded(response.iter_bytes())
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        why = str(problem) or type(problem).__name__
        raise CommandFailure(ExitCode.UNREACHABLE, f"no file from {one_line(url)}: {why}") from None


def bounded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a file that is not too large.

    Raises:
        Failure: it is.
    """
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > MAX_DOWNLOAD_BYTES:
            raise CommandFailure(ExitCode.UNREACHABLE, f"over {MAX_DOWNLOAD_BYTES} bytes, which is the most")
        yield piece
