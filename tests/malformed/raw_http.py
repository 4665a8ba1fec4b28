"""A connection that sends any bytes at all, where a client would tidy them up."""

import asyncio
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Response:
    """An answer; headers by lower-case name."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection:
    """One connection, kept alive and dialed again when the hub has ended it."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._host, self._port = where.hostname, where.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._close()

    async def ask(self, request: bytes, *, within_s: float) -> Response:
        """Send these bytes; the whole answer, a stream's until its end.

        Raises:
            TimeoutError: there was none in time.
            IncompleteReadError: the hub hung up.
        """
        reader, writer = self._streams = self._streams or await asyncio.open_connection(self._host, self._port)
        try:
            async with asyncio.timeout(within_s):
                writer.write(request)
                await writer.drain()
                response = await _read(reader, is_head=request.startswith(b"HEAD "))
        except BaseException:
            await self._close()
            raise
        if response.headers.get("connection") == "close":
            await self._close()
        return response

    async def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            await asyncio.gather(self._streams[1].wait_closed(), return_exceptions=True)
            self._streams = None


async def _read(reader: asyncio.StreamReader, *, is_head: bool) -> Response:
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    status = int(start.split(" ")[1])
    if status == 100:
        return await _read(reader, is_head=is_head)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if is_head or status in (204, 304):
        return Response(status, headers, b"")
    if headers.get("transfer-encoding") == "chunked":
        return Response(status, headers, await _chunks(reader))
    if "content-length" in headers:
        return Response(status, headers, await reader.readexactly(int(headers["content-length"])))
    return Response(status, headers, await reader.read())


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return bytes(body)
