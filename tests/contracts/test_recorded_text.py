"""What is kept of a request or a response: headers of a list, and bodies without credentials."""

import json

import pytest

from a2a_bridge.wire.recorded_text import HIDDEN, keep_body, keep_request_headers, keep_response_headers

SECRETS = ("push-token", "of-the-receiver", "path-secret", "key-of-a-model", "cw_sess_0123456789abcdef")
PUSH = {
    "url": "https://user:password@receiver.example/path-secret?token=push-token",
    "token": "push-token",
    "authentication": {"scheme": "Bearer", "credentials": "of-the-receiver"},
}


def kept(document: object, **options: bool) -> str:
    return keep_body(json.dumps(document).encode(), is_whole=options.get("is_whole", True))


def test_headers_are_kept_by_a_list() -> None:
    sent = {"authorization": "Bearer secret", "cookie": "a=b", "x-api-key": "k", "accept": "*/*", "x-new": "1"}
    assert keep_request_headers(sent) == '{"accept":"*/*"}'
    answered = [(b"set-cookie", b"cw=1"), (b"Content-Type", b"application/json"), (b"x-new", b"1")]
    assert keep_response_headers(answered) == '{"content-type":"application/json"}'
    assert "cw_sess_0123456789abcdef" not in keep_request_headers({"user-agent": "me cw_sess_0123456789abcdef"})


def test_a_body_without_credentials_is_kept_byte_for_byte() -> None:
    body = '{"b": 1,\n  "a": ["\\u00e9", {"c": null}]}'
    assert keep_body(body.encode(), is_whole=True) == body


@pytest.mark.parametrize(
    "name", ["taskPushNotificationConfig", "pushNotificationConfig", "push_notification_config"]
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_of_a_push_config_the_host_is_kept_at_most(name: str, is_whole: bool) -> None:
    text = kept({"params": {"configuration": {name: PUSH}, "api_key": "key-of-a-model"}}, is_whole=is_whole)
    assert not [secret for secret in SECRETS if secret in text]
    assert ("https://receiver.example/…" in text) is is_whole
    assert HIDDEN in text


@pytest.mark.parametrize("is_whole", [True, False])
def test_members_that_are_named_as_credentials_lose_their_values(is_whole: bool) -> None:
    members = {"apiKey": "key-of-a-model", "Authorization": "push-token", "client-secret": "of-the-receiver"}
    text = kept({"headers": members, "said": "my token is cw_sess_0123456789abcdef"}, is_whole=is_whole)
    assert not [secret for secret in SECRETS if secret in text]
    assert '"said"' in text


def test_a_name_that_is_written_with_escapes_hides_nothing_in_a_body_that_is_cut() -> None:
    body = '{"to\\u006ben": "push-token", "push\\u004eotificationConfig": {"x": "path-secret"'
    assert not [secret for secret in SECRETS if secret in keep_body(body.encode(), is_whole=False)]


def test_a_credential_at_the_cut_is_left_out() -> None:
    assert "push-t" not in keep_body(b'{"a": 1, "token": "push-t', is_whole=False)


@pytest.mark.parametrize("body", [b"", b"\xff\x00{", b"[" * 5000, b'{"token": "push-token", "a": "\\ud800"}'])
def test_a_broken_body_is_kept_as_text_that_databases_take(body: bytes) -> None:
    text = keep_body(body, is_whole=True)
    assert "\0" not in text
    assert "push-token" not in text
    text.encode()
