"""A picture that an agent sends."""

import struct
import zlib
from base64 import b64encode


def png(side: int) -> str:
    """A square picture, in base64."""
    lines = (b"\0" + bytes((row * 255 // side,) * 3 * side) for row in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"".join(lines)))
    return b64encode(b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")).decode()
