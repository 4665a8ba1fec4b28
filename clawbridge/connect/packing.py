"""Makes `connect.pyz` of the connector, the client of AGNT, and the library `websockets`.

The file needs Python alone. Equal sources make equal bytes: names are sorted, times fixed, nothing is compressed.

    python -m clawbridge.connect.packing FOLDER
"""

import hashlib
import io
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import websockets

NAME = "connect.pyz"
MIN_PYTHON = (3, 11)
EPOCH = (1980, 1, 1, 0, 0, 0)
OWN = ("__init__.py", "breaker.py", "checks.py", "agnt/*.py", "connect/*.py")
LIBRARY = ("*.py", "asyncio/*.py", "extensions/*.py")
LEFT_OUT = frozenset({"cli.py", "__main__.py", "asyncio/server.py", "asyncio/router.py", "server.py", "auth.py"})
MAIN = f"""\
import sys

if sys.version_info < {MIN_PYTHON!r}:
    sys.exit("connect.pyz: want Python %d.%d or newer, this is %d.%d" % ({MIN_PYTHON!r} + sys.version_info[:2]))

from clawbridge.connect.__main__ import main

sys.exit(main())
"""


@cache
def archive() -> bytes:
    """The bytes of `connect.pyz`; the first line is for shells that start it by name."""
    packed = io.BytesIO()
    packed.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_STORED) as pyz:
        for name, content in sorted(_contents()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            pyz.writestr(entry, content)
    return packed.getvalue()


@cache
def checksum() -> str:
    """SHA-256 of the bytes, in hex."""
    return hashlib.sha256(archive()).hexdigest()


def _contents() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", MAIN.encode()
    package = Path(__file__).parent.parent
    for pattern in OWN:
        for path in package.glob(pattern):
            yield path.relative_to(package.parent).as_posix(), path.read_bytes()
    library = Path(websockets.__file__).parent
    for pattern in LIBRARY:
        for path in library.glob(pattern):
            name = path.relative_to(library).as_posix()
            if name not in LEFT_OUT:
                yield f"websockets/{name}", path.read_bytes()
    for path in library.parent.glob("websockets-*.dist-info/licenses/LICENSE"):
        yield "websockets/LICENSE", path.read_bytes()


def main() -> int:
    """Write the file, and its SHA-256 beside it."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m clawbridge.connect.packing FOLDER\n")
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(archive())
    (folder / f"{NAME}.sha256").write_text(f"{checksum()}  {NAME}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
