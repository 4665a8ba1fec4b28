"""Bytes of connections, drawn by Hypothesis: what is hardly HTTP, and frames that are hardly WebSocket's."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hypothesis import strategies as st

from tests.fuzz.values import Draw

Ending = Literal["wait", "late", "half-close", "reset"]

CRLF = b"\r\n"
METHODS = [
    *[b"POST"] * 12,
    *[b"GET"] * 4,
    b"HEAD",
    b"PUT",
    b"OPTIONS",
    b"TRACE",
    b"CONNECT",
    b"PRI",
    b"get",
    b"X" * 90,
]
VERSIONS = [
    *[b"HTTP/1.1"] * 30,
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"HTTP/1.1 ",
    b"http/1.1",
    b"",
    b"HTTP/0.9",
    b"HTTP/1.10",
]
ENDS = [*[CRLF] * 27, b"\n", b"\r", b"\r\r\n"]
HEADERS = [
    b"Connection: close", b"Connection: keep-alive", b"Connection: Upgrade",
    b"Connection: close, upgrade", b"Upgrade: websocket", b"Upgrade: h2c",
    b"HTTP2-Settings: AAMAAABkAAQAAP__", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8",
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", b"Sec-WebSocket-Key: x",
    b"Sec-WebSocket-Protocol: a2a-v1", b"Sec-WebSocket-Extensions: permessage-deflate",
    b"Expect: 100-continue", b"Expect: x", b"Content-Length: 0", b"Content-Length: 5",
    b"Content-Length: -1", b"Content-Length: 1e3", b"Content-Length: 99999999999999999999",
    b"Content-Length: 5, 5", b"Content-Length:", b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: identity", b"transfer-encoding : chunked", b"Host: elsewhere.example", b"Host:",
    b"X: " + b"y" * 70_000, b"X: a\0b", b" folded", b": no name", b"no colon", b"X" * 300 + b": 1",
    b"Trailer: X", b"TE: trailers", b"\xff\xfe: \xff", b"Range: bytes=0-1", b"Content-Encoding: gzip",
    b"Accept-Encoding: gzip", b"Cookie: \xff=;;;", b"Forwarded: for=x",
]  # fmt: skip
NO_MORE, ONE_MORE = st.just([]), st.lists(st.sampled_from(HEADERS), min_size=1, max_size=1)
MORE = st.lists(st.sampled_from(HEADERS), min_size=2, max_size=4)
CHUNK_SIZES = [
    b"0",
    b"1",
    b"5",
    b"05",
    b"5;ext=1",
    b"5 ",
    b"-1",
    b"ffffffffffffffff",
    b"g",
    b"",
    b"FFFFFFFFFFFFFFFFF",
]
NOISE = st.binary(min_size=1, max_size=40)
LENGTHS = [0, 1, 2, 125, 126, 127, 200, 65_535, 65_536, 70_000]
BIG = [2**16, 2**22 + 1, 2**31, 2**62, 2**63, 2**64 - 1]
OPCODES = [1, 1, 1, 1, 0, 0, 2, 8, 9, 10, 3, 7, 11, 15]
CODES = [1000, 1001, 1005, 1006, 1015, 0, 999, 2999, 3000, 4999, 65_535]
PLACES = st.integers(0, 2**16 - 1)


@dataclass(frozen=True)
class RawCase:
    """What a client sends in its packets, and what it does then.

    It waits for an answer or the end of the connection, or leaves: at once (`half-close`, `reset`), or `late`.
    `upgrade`: a request that opens a WebSocket, sent first; the client waits for its answer if `waits`.
    """

    packets: tuple[bytes, ...]
    ending: Ending
    upgrade: bytes = b""
    waits: bool = True


@st.composite
def http_cases(draw: Draw, targets: Sequence[bytes], bodies: Sequence[bytes], headers: Sequence[bytes]) -> RawCase:
    """One to three requests on one connection. `headers`: of a sound request."""
    number = draw(st.sampled_from([1, 1, 2, 3]))
    data = b"".join(_request(draw, targets, bodies, headers) for _ in range(number))
    return RawCase(_packets(draw, _changed(draw, data)), _ending(draw))


@st.composite
def socket_cases(draw: Draw, upgrades: Sequence[bytes], texts: Sequence[bytes]) -> RawCase:
    """A sound upgrade, and frames that are seldom sound."""
    frames = b"".join(_frame(draw, texts) for _ in range(draw(st.integers(1, 6))))
    ending: Ending = draw(st.sampled_from(["late", "half-close", "reset"]))
    waits = draw(st.sampled_from([True, True, True, False]))
    return RawCase(_packets(draw, _changed(draw, frames)), ending, draw(st.sampled_from(upgrades)), waits)


def _request(draw: Draw, targets: Sequence[bytes], bodies: Sequence[bytes], headers: Sequence[bytes]) -> bytes:
    method, target, version = (draw(st.sampled_from(one)) for one in (METHODS, targets, VERSIONS))
    lines = [*headers, *draw(st.sampled_from([NO_MORE, NO_MORE, ONE_MORE, MORE]).flatmap(lambda some: some))]
    body = draw(st.sampled_from(bodies)) if method not in (b"GET", b"HEAD") or draw(st.booleans()) else b""
    framing = draw(st.sampled_from([*["length"] * 10, "chunks", "chunks", "chunks", "less", "more", "none"]))
    if framing == "chunks":
        lines.append(b"Transfer-Encoding: chunked")
        body = _chunks(draw, body)
    elif framing != "none":
        off = {"length": 0, "less": -3, "more": 7}[framing]
        lines.append(b"Content-Length: %d" % max(0, len(body) + off))
    end = draw(st.sampled_from(ENDS))
    return end.join([b" ".join([method, target, version]), *lines]) + end * 2 + body


def _chunks(draw: Draw, body: bytes) -> bytes:
    """The body in chunks; some have a wrong size."""
    pieces, size = list[bytes](), draw(st.sampled_from([1, 7, 100, 5000]))
    for begins in range(0, min(len(body), 40 * size), size):
        piece = body[begins : begins + size]
        wrong = draw(st.sampled_from([*[b""] * 60, *CHUNK_SIZES])) if len(pieces) < 8 else b""
        pieces += [wrong or b"%x" % len(piece), piece]
    last = draw(st.sampled_from([*[b"0\r\n\r\n"] * 8, b"0\r\nX: 1\r\n\r\n", b"0\r\n", b"", b"00000\r\n\r\n"]))
    return b"".join(piece + CRLF for piece in pieces) + last


def _frame(draw: Draw, texts: Sequence[bytes]) -> bytes:
    """A frame of a client (RFC 6455, section 5.2)."""
    opcode = draw(st.sampled_from(OPCODES))
    head = opcode | draw(st.sampled_from([*[0x80] * 8, 0x00, 0x00, 0xC0, 0xF0]))
    payload = draw(st.sampled_from([*texts, b"", b"\xff\xfe", b"{", b"\xed\xa0\x80"]))
    if opcode == 8 and draw(st.booleans()):
        payload = struct.pack("!H", draw(st.sampled_from(CODES))) + payload[:123]
    elif draw(st.integers(0, 7)) == 0:
        payload = (payload or b"x") * 3
        payload = payload.ljust(draw(st.sampled_from(LENGTHS)), b" ")[:70_000]
    form = draw(st.sampled_from(["least"] * 16 + ["16", "64", "lie", "big"]))
    size = len(payload)
    if form == "big":
        size, form = draw(st.sampled_from(BIG)), "64"
    elif form == "lie":
        size, form = (size + 3) % 65_536, "16"
    if form == "64" or (form == "least" and size > 65_535):
        length = bytes([127]) + struct.pack("!Q", size)
    elif form == "16" or size > 125:
        length = bytes([126]) + struct.pack("!H", min(size, 65_535))
    else:
        length = bytes([size])
    mask = draw(st.sampled_from([b"\0\0\0\0", b"\x01\x02\x03\x04", b"\xff\xff\xff\xff", *[b"key!"] * 8, b""]))
    if mask:
        length = bytes([length[0] | 0x80]) + length[1:]
        payload = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return bytes([head]) + length + mask + payload


def _changed(draw: Draw, data: bytes) -> bytes:
    """The data, sometimes with a few bytes more, less, twice or other ones."""
    how = draw(st.sampled_from([*["same"] * 8, "more", "less", "other", "twice", "cut"]))
    if how == "same":
        return data
    begins, size = draw(PLACES) % len(data), draw(st.integers(1, 30))
    before, after = data[:begins], data[begins + size :]
    return {
        "more": lambda: data[:begins] + draw(NOISE) + data[begins:],
        "less": lambda: before + after,
        "other": lambda: before + draw(NOISE) + after,
        "twice": lambda: data[: begins + size] + data[begins:],
        "cut": lambda: before or data[:1],
    }[how]()


def _packets(draw: Draw, data: bytes) -> tuple[bytes, ...]:
    cuts = sorted({draw(PLACES) % (len(data) + 1) for _ in range(draw(st.integers(0, 4)))} - {0, len(data)})
    return tuple(data[begins:ends] for begins, ends in zip([0, *cuts], [*cuts, len(data)], strict=True))


def _ending(draw: Draw) -> Ending:
    ending: Ending = draw(st.sampled_from([*["late"] * 6, "half-close", "reset", "wait"]))
    return ending
