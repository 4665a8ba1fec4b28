"""Pictures that callers and agents send."""

import struct
import zlib
from base64 import b64encode


def png(side: int) -> bytes:
    """A square picture with a gradient."""
    lines = (b"\0" + bytes((row * 255 // side,) * 3 * side) for row in range(side))
    return png_of(side, side, b"".join(lines))


def png_of(width: int, height: int, lines: bytes) -> bytes:
    """A picture whose header states this size, whatever its lines are."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


PIXEL = png(1)
PIXEL_BASE64 = b64encode(PIXEL).decode()
