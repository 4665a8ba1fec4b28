"""Forms whose media type names another charset than UTF-8: Python would decode some, and fail at others."""

import pytest

from tests.signin.clients import Browser, program

FORM = "application/x-www-form-urlencoded"
PARTS = b'--B\r\nContent-Disposition: form-data; name="login"\r\n\r\nerin\r\n--B--\r\n'


@pytest.mark.parametrize("charset", ["hex", "utf-7", "idna", "unicode_escape", '"hex"', "utf-8; charset=hex"])
def test_a_form_in_another_charset_is_415(browser: Browser, charset: str) -> None:
    with program(browser.hub.url) as client:
        for path, media_type, body in (
            ("/api/v1/auth/clients/token", FORM, b"code=x&redirect_uri=%5Cud800+2AA-"),
            ("/signin", f"{FORM}", b"login=erin"),
            ("/signin", "multipart/form-data; boundary=B", PARTS),
        ):
            sent = {"Content-Type": f"{media_type}; charset={charset}"}
            answer = client.post(path, content=body, headers=sent)
            assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type"), path


@pytest.mark.parametrize("charset", ["UTF-8", "utf8", '"utf-8"'])
def test_a_form_that_says_it_is_utf_8_is_read(browser: Browser, charset: str) -> None:
    with program(browser.hub.url) as client:
        sent = {"Content-Type": f"{FORM}; charset={charset}"}
        answer = client.post("/api/v1/auth/clients/token", content=b"grant_type=x", headers=sent)
    assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")
