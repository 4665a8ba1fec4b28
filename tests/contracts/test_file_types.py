"""What files may declare: the bytes of each type, and the pixels of pictures."""

import struct
from contextlib import suppress

import pytest

from agents.transcript.file_types import FileRefused, check_type, find_format
from lab.pictures import PIXEL, png, png_of

JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
SIZE_OF_JPEG = b"\xff\xc0\0\x11\x08%s%s\3\1\x22\0\2\x11\1\3\x11\1"
PDF = b"%PDF-1.4\n1 0 obj\n"
GIF = b"GIF89a\1\0\1\0\x80\0\0"
ZIP = b"PK\3\4\x14\0\0\0\0\0"
PROGRAM = b"MZ\x90\0" + bytes(60)
PAGE = b"<!doctype html><script>alert(1)</script>"


def jpeg(side: int) -> bytes:
    return JPEG + SIZE_OF_JPEG % (struct.pack(">H", side), struct.pack(">H", side))


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        (PIXEL, "image/png"),
        (jpeg(7), "image/jpeg"),
        (jpeg(7), "image/jpg"),
        (GIF, "image/gif"),
        (PDF, "application/pdf"),
        (ZIP, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        (b"hello", "text/plain"),
        ("Größe".encode("latin-1"), "text/csv"),
        ("Größe".encode("utf-16"), "text/plain"),
        (PAGE, "text/html"),
        (b"BM is no picture", "text/plain"),
        (b"anything at all", "application/x-own"),
        (PROGRAM, "application/x-own"),
        (b"what a sound", "audio/x-own"),
        (PIXEL, "application/octet-stream"),
    ],
)
def test_a_file_of_its_type_is_taken(data: bytes, declared: str) -> None:
    check_type(data, declared, "a")


@pytest.mark.parametrize(
    ("data", "declared", "found"),
    [
        (PDF, "image/png", "application/pdf"),
        (PAGE, "image/png", "text/html"),
        (PAGE, "image/x-own", "text/html"),
        (b"hello", "image/webp", "something else"),
        (PIXEL, "image/jpeg", "image/png"),
        (PIXEL, "text/plain", "image/png"),
        (PIXEL, "audio/mpeg", "image/png"),
        (ZIP, "application/pdf", "application/zip"),
        (ZIP, "text/csv", "application/zip"),
        (PROGRAM, "application/pdf", "a program"),
        (PROGRAM, "video/mp4", "a program"),
        (b"a\0b", "application/json", "something else"),
    ],
)
def test_a_file_that_lies_about_its_type_is_refused(data: bytes, declared: str, found: str) -> None:
    with pytest.raises(FileRefused, match=f"^a: declared as {declared}, but its content is {found}$"):
        check_type(data, declared, "a")


@pytest.mark.parametrize("data", [png_of(60_000, 60_000, bytes(10)), jpeg(65_535)], ids=["png", "jpeg"])
def test_a_picture_that_would_unpack_to_gigabytes_is_refused_by_its_header(data: bytes) -> None:
    assert len(data) < 1000
    with pytest.raises(FileRefused, match=r"pixels; at most 50 million are taken: send a smaller one"):
        check_type(data, find_format(data), "bomb")


@pytest.mark.parametrize("length", range(1, len(PIXEL), 3))
def test_a_cut_picture_never_breaks_the_check(length: int) -> None:
    with suppress(FileRefused):  # where the header is whole, the check has all that it reads
        check_type(PIXEL[:length], "image/png", "a")


def test_noise_behind_the_beginning_of_each_format_never_breaks_the_check() -> None:
    noise = bytes(range(256)) * 8
    begins = [PIXEL[:20], jpeg(9), GIF[:8], b"RIFF\0\0\0\0WEBPVP8X", b"\0\0\0\x20ftypavif", b"II*\0"]
    for begin in [*begins, b"BM" + bytes(12)]:
        for shift in range(0, 256, 5):
            data = begin + noise[shift:]
            if found := find_format(data):
                with suppress(FileRefused):
                    check_type(data, found, "a")


def test_a_large_real_picture_is_taken() -> None:
    check_type(png(300), "image/png", "a")
