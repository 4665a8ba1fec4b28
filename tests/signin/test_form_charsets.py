"""Forms whose media type names another charset than UTF-8: Python would decode some, and fail at others."""

from tests.signin.clients import Browser, program, refused

FORM = "application/x-www-form-urlencoded"
PARTS = b'--B\r\nContent-Disposition: form-data; name="login"\r\n\r\nerin\r\n--B--\r\n'


def test_a_form_in_another_charset_is_415_and_one_in_utf_8_is_read(browser: Browser) -> None:
    token = "/api/v1/auth/clients/token"
    with program(browser.hub.url) as client:
        for charset in ("hex", "utf-7", "idna", "unicode_escape", '"hex"', "utf-8; charset=hex"):
            for path, media_type, body in (
                (token, FORM, b"code=x&redirect_uri=%5Cud800+2AA-"),
                ("/signin", FORM, b"login=erin"),
                ("/signin", "multipart/form-data; boundary=B", PARTS),
            ):
                sent = {"Content-Type": f"{media_type}; charset={charset}"}
                answer = client.post(path, content=body, headers=sent)
                refused(answer, "unsupported_media_type", 415)
        for charset in ("UTF-8", "utf8", '"utf-8"'):
            sent = {"Content-Type": f"{FORM}; charset={charset}"}
            answer = client.post(token, content=b"grant_type=x", headers=sent)
            assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type"), charset
