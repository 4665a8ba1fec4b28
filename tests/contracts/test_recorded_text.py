"""What is kept of a request or a response: headers of a list, and bodies without credentials."""

import json

import pytest

from a2a_bridge.wire.recorded_text import (
    HIDDEN,
    hide_push_configs,
    keep_body,
    keep_request_headers,
    keep_response_headers,
)

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


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        *("X-Figma-Token", "GITHUB_TOKEN", "X-Auth-Token", "aws_secret_access_key", "accessKey", "x.api key"),
        *("credentials", "password", "db-passphrase", "Set-Cookie", "secrets", "my\ttoken"),
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        "push-token",
        ["push-token", {"b": ["of-the-receiver"]}],
        {"user": "push-token", "pass": 'of-the-receiver "]}'},
        [],
    ],
)
def test_credentials_are_found_by_the_ends_of_their_names_whatever_their_type(
    name: str, value: object, is_whole: bool
) -> None:
    text = kept({"before": [1], name: value, "after": {"b": "said"}}, is_whole=is_whole)
    assert json.loads(text) == {"before": [1], name: HIDDEN, "after": {"b": "said"}}


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        *("to\u212aen", "\u017fecret", "credent\u0131al", "author\u0130zation", "COO\u212a\u0130E"),
        *("api_\u212aey", "p\u0131ush_Notificat\u0131on token", "pa\u017f\u017fword"),
    ],
)
def test_letters_that_are_equal_but_for_their_case_hide_no_credential(name: str, is_whole: bool) -> None:
    body = json.dumps({name: "push-token"}, ensure_ascii=False)
    assert json.loads(keep_body(body.encode(), is_whole=is_whole)) == {name: HIDDEN}


@pytest.mark.parametrize("is_whole", [True, False])
def test_counts_of_tokens_and_booleans_are_kept_and_numbers_of_other_credentials_are_not(is_whole: bool) -> None:
    body: dict[str, object] = {"max_tokens": 5, "totalTokens": 7, "progressToken": 3, "tokens": ["a", "b"]}
    body |= {"needs_password": True, "token": None, "tokenizer": "t", "stop-token": -1.5e3}
    assert json.loads(kept(body, is_whole=is_whole)) == body
    assert json.loads(kept({"password": 12345, "b": 1}, is_whole=is_whole)) == {"password": HIDDEN, "b": 1}


def test_a_value_that_is_cut_is_left_out() -> None:
    text = keep_body(b'{"a": 1, "credentials": {"user": ["push-token", "of-the-re', is_whole=False)
    assert text == f'{{"a": 1, "credentials": "{HIDDEN}"'


def test_a_body_that_cannot_be_read_ends_before_its_push_config() -> None:
    body = json.dumps({"pushNotificationConfig": PUSH, "a": "x"})[:-1]
    text = keep_body(body.encode(), is_whole=True)
    assert not [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("is_whole", [True, False])
def test_other_readers_see_no_host_of_a_push_config(is_whole: bool) -> None:
    body = kept({"message": "said", "configuration": {"pushNotificationConfig": PUSH}}, is_whole=is_whole)
    shown = hide_push_configs(body)
    assert "receiver.example" not in shown
    assert "said" in shown
    assert hide_push_configs('{"a":  1}') == '{"a":  1}'


def test_a_credential_at_the_cut_is_left_out() -> None:
    assert "push-t" not in keep_body(b'{"a": 1, "token": "push-t', is_whole=False)


@pytest.mark.parametrize("body", [b"", b"\xff\x00{", b"[" * 5000, b'{"token": "push-token", "a": "\\ud800"}'])
def test_a_broken_body_is_kept_as_text_that_databases_take(body: bytes) -> None:
    text = keep_body(body, is_whole=True)
    assert "\0" not in text
    assert "push-token" not in text
    text.encode()
