"""Names and media types of files: what a session takes of those that an upload gives."""

from agents.models import Session
from agents.transcript.files import clean_mime, clean_name
from tests.native.rows import Person, api
from tests.native.session_files import TEXT, of

HOSTILE = [
    ("../../etc/passwd", "passwd"),
    ("..\\..\\boot.ini", "boot.ini"),
    ("/etc/shadow", "shadow"),
    ("C:\\secret.txt", "secret.txt"),
    ("a\0b.txt", "ab.txt"),
    ("a\r\nSet-Cookie: x=1.txt", "aSet-Cookie: x=1.txt"),
    ("gnp\u202exe.txt", "gnpxe.txt"),
    ("\ud800.txt", ".txt"),
    ("Grüße 你好 🦀.md", "Grüße 你好 🦀.md"),
    ("  spaced .txt ", "spaced .txt"),
    ("", "file"),
    ("..", "file"),
    ("dir/", "file"),
    ("\0\x07", "file"),
    ("n" * 10_000, "n" * 255),
    ("n" * 10_000 + ".txt", "n" * 251 + ".txt"),
    ("." + "n" * 10_000, "." + "n" * 254),
]


def test_a_name_is_made_harmless() -> None:
    for given, kept in HOSTILE:
        assert clean_name(given) == kept, (given, kept)


def test_no_name_on_the_wire_breaks_an_upload_or_its_download(alice: Person, session: Session) -> None:
    for raw in [
        b"../../etc/passwd",
        b"a\0b",
        b"..\\x",
        b"n" * 900,
        "🦀".encode(),
        b"&#0;x",
        b"%00x",
    ]:
        disposition = b'Content-Disposition: form-data; name="file"; filename="' + raw + b'"\r\n\r\n'
        body = b"--b\r\n" + disposition + TEXT + b"\r\n--b--\r\n"
        answer = api(alice.session).post(of(session), body, content_type="multipart/form-data; boundary=b")
        assert answer.status_code == 201, answer.content
        name = answer.json()["filename"]
        assert name, raw
        assert len(name) <= 255, raw
        assert name.isprintable(), raw
        assert not set(name) & {"/", "\\"}, raw
        content = api(alice.session).get(f"/api/v1/files/{answer.json()['id']}/content")
        assert content.content == TEXT, raw
        assert content["Content-Disposition"].startswith("attachment"), raw


def test_a_media_type_has_the_shape_of_one() -> None:
    for given, kept in [
        ("text/plain", "text/plain"),
        ("Text/HTML; charset=utf-8", "text/html"),
        ("image/svg+xml", "image/svg+xml"),
        ("", "application/octet-stream"),
        (None, "application/octet-stream"),
        ("text", "application/octet-stream"),
        ("text/plain\r\nX: y", "application/octet-stream"),
        ("a/" + "b" * 64, "application/octet-stream"),
        ("té/xt", "application/octet-stream"),
    ]:
        assert clean_mime(given) == kept, (given, kept)
