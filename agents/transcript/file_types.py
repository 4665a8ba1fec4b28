"""The check of a file that a caller sends: its bytes are of the declared type, and a picture is not too large.

The bytes are never decoded: formats are known by their first bytes, and pictures state their size in a header.
"""

import struct
from collections.abc import Callable, Mapping
from io import BytesIO
from mimetypes import MimeTypes

import imagesize

from agents import settings
from kit.asgi import RequestRefused

ANY_MIME = "application/octet-stream"
PDF = "application/pdf"
MEGAPIXEL = 1_000_000
BMP_HEADS = (b"\x28\0\0\0", b"\x6c\0\0\0", b"\x7c\0\0\0")
SHOWN_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
PREVIEWED = SHOWN_PICTURES | {PDF}  # browsers show these without running anything in them
PROGRAM = "a program"
HTML = "text/html"
HTML_BEGINS = (b"<!doctype html", b"<html", b"<script", b"<svg", b"<?xml")
WITH_ZEROS = (b"\xff\xfe", b"\xfe\xff")  # texts in UTF-16 and UTF-32 begin with these bytes, and have bytes of 0
ALIASES: Mapping[str, str] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/x-bmp": "image/bmp",
    "application/x-pdf": PDF,
}
TYPES_OF_TEXT = frozenset(
    {
        *("application/json", "application/xml", "application/yaml", "application/toml", "application/javascript"),
        *("application/x-ndjson", "application/sql", "image/svg+xml"),
    }
)
NAMED_TYPES = MimeTypes()  # of Python, not of the machine: every hub knows the same

# The formats that are known by their bytes. A file that declares one of these types must be of this format.
FORMATS: Mapping[str, Callable[[bytes], bool]] = {
    "image/png": lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda data: data.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda data: data.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP",
    "image/avif": lambda data: data[4:12] in (b"ftypavif", b"ftypavis"),
    "image/bmp": lambda data: data.startswith(b"BM") and data[14:18] in BMP_HEADS,
    "image/tiff": lambda data: data.startswith((b"II*\0", b"MM\0*")),
    PDF: lambda data: data.startswith(b"%PDF-"),
}
# Formats that many types have, as a spreadsheet is a ZIP: these may not be declared as pictures, sounds or texts.
CONTAINERS: Mapping[str, Callable[[bytes], bool]] = {
    "application/zip": lambda data: data.startswith((b"PK\x03\x04", b"PK\x05\x06")),
    "application/gzip": lambda data: data.startswith(b"\x1f\x8b"),
    PROGRAM: lambda data: data.startswith((b"MZ", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"#!")),
    HTML: lambda data: data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(HTML_BEGINS),
}


class FileRefused(RequestRefused):
    """The hub takes no such file: its bytes are not of its type, a picture is too large, or a scan refused it."""

    def __init__(self, message: str) -> None:
        super().__init__(415, "file_refused", message)


def media_type_of_file(declared: str, name: str) -> str:
    """The media type of an uploaded file: the declared one, or one by its name where nothing else is said."""
    if declared != ANY_MIME:
        return ALIASES.get(declared, declared)
    return NAMED_TYPES.guess_type(name, strict=True)[0] or ANY_MIME


def check_type(data: bytes, media_type: str, name: str) -> None:
    """Check that the bytes are of the media type, and that a picture is not too large to be shown.

    Raises:
        FileRefused: they are of another type, or the picture has too many pixels.
    """
    declared = ALIASES.get(media_type, media_type)
    found = find_format(data)
    if not _agrees(declared, found, data):
        is_known = f"its content is {found}" if found else "its content is something else"
        raise FileRefused(f"{name}: declared as {declared}, but {is_known}")
    if found.startswith("image/"):
        _check_pixels(data, name)


def find_format(data: bytes) -> str:
    """The media type that the bytes certainly have; empty where their beginning does not say."""
    return next((name for name, is_it in {**FORMATS, **CONTAINERS}.items() if is_it(data)), "")


def _agrees(declared: str, found: str, data: bytes) -> bool:
    """True if bytes of the format `found` may have the declared type."""
    if declared in FORMATS or found in FORMATS:
        return declared in (found, ANY_MIME)
    if declared.startswith("text/") or declared in TYPES_OF_TEXT:
        is_binary = b"\0" in data and not data.startswith(WITH_ZEROS)
        return not is_binary and found not in ("application/zip", "application/gzip")
    return not (found and declared.startswith(("image/", "audio/", "video/", "font/")))


def _check_pixels(data: bytes, name: str) -> None:
    try:
        width, height = imagesize.get(BytesIO(data))
    except (ValueError, LookupError, OverflowError, ArithmeticError, OSError, struct.error):
        width = height = -1
    if width <= 0 or height <= 0:
        raise FileRefused(f"{name}: the picture does not say how large it is, or is damaged")
    if width * height > settings.PICTURE_MEGAPIXELS * MEGAPIXEL:
        text = f"{name}: the picture has {width} x {height} pixels; at most {settings.PICTURE_MEGAPIXELS} million"
        raise FileRefused(f"{text} are taken: send a smaller one")
