"""Every error over REST is `{"error", "message"}`; elsewhere it is a plain page."""

import json
import logging
from typing import Any

import pytest
from django.test import Client, RequestFactory
from rest_framework.test import APIRequestFactory
from rest_framework.views import APIView

from accounts import error_responses
from accounts.authn import COOKIE
from accounts.models import Credential
from tests.native.rows import Person, api, browser, make_agent, make_session

AGENTS = "/api/v1/agents"
OURS = "http://127.0.0.1:8787"


@pytest.fixture(autouse=True)
def _public_url(settings: Any) -> None:
    settings.PUBLIC_URL = OURS


def assert_error(answer: Any, status: int, code: str) -> str:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"].startswith("application/json")
    body = answer.json()
    assert set(body) == {"error", "message"}
    assert body["error"] == code
    assert body["message"]
    message: str = body["message"]
    return message


def post(person: Person, body: bytes, content_type: str = "application/json") -> Any:
    return api(person.session).post(AGENTS, body, content_type=content_type)


def test_a_body_that_cannot_be_read_is_a_400(alice: Person) -> None:
    for body in [
        b"{",
        b"",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"name": NaN}',
        b'{"name": 1' + b"0" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"name": "\\u0000", "sessionId": "x"}',
        b'{"name": "\\ud800", "sessionId": "x"}',
        b'{"name": {"a": 1}, "sessionId": {"b": []}}',
    ]:
        assert_error(post(alice, body), 400, "validation_failed")


def test_an_error_may_quote_half_a_character(alice: Person) -> None:
    answer = post(alice, b'{"name": "a", "sessionId": "x", "access": "\\ud800"}')
    assert r"\ud800" in assert_error(answer, 400, "validation_failed")


def test_a_401_says_what_to_send(alice: Person) -> None:
    for token in (None, "cw_sess_" + "0" * 32, "nonsense"):
        sent = {"HTTP_AUTHORIZATION": f"Bearer {token}"} if token else {}
        answer = Client().get(AGENTS, **sent)
        assert "send a live token" in assert_error(answer, 401, "unauthorized")
        assert answer["WWW-Authenticate"] == "Bearer"


def test_a_body_of_a_mebibyte_is_read_and_one_byte_more_is_a_413(alice: Person) -> None:
    start = b'{"sessionId": "%s", "name": "x", "claudeMd": "' % str(make_session(alice.user).public_id).encode()
    fill = b"y" * (1_048_576 - len(start) - 2)
    assert "claudeMd" in assert_error(post(alice, start + fill + b'"}'), 400, "validation_failed")
    assert_error(post(alice, start + fill + b'y"}'), 413, "payload_too_large")


def test_a_key_that_is_named_twice_is_a_400(alice: Person) -> None:
    body = b'{"sessionId": "%s", "name": "x"%s}' % (str(make_session(alice.user).public_id).encode(), b"%s")
    message = assert_error(post(alice, body % b', "name": "y"'), 400, "validation_failed")
    assert message == "an object names one key twice"
    message = assert_error(post(alice, body % b', "more": [{"a": 1, "a": 1}]'), 400, "validation_failed")
    assert message == "an object names one key twice"
    twice = b', "skills": [{"id": "a", "name": "A"}, {"id": "b", "name": "A"}]'
    assert post(alice, body % twice).status_code == 201


def test_a_body_may_be_64_levels_deep_and_not_one_more(alice: Person) -> None:
    start = b'{"sessionId": "%s", "name": "x", "ignored": ' % str(make_session(alice.user).public_id).encode()
    message = assert_error(post(alice, start + b"[" * 64 + b"]" * 64 + b"}"), 400, "validation_failed")
    assert message == "nested deeper than 64 levels"
    message = assert_error(post(alice, start + b"[" * 63 + b"]" * 63 + b"}"), 400, "validation_failed")
    assert message == "ignored: there is no such field"


@pytest.mark.parametrize("content_type", ["", "application/json; charset=utf-8", "application/a2a+json"])
@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b'{"name": NaN}'])
def test_what_is_not_json_is_called_so_by_the_media_types_of_every_surface(
    alice: Person, content_type: str, body: bytes
) -> None:
    answer = api(alice.session).generic("POST", AGENTS, body, content_type=content_type)
    assert assert_error(answer, 400, "validation_failed") == "the body is not JSON"
    form = post(alice, b"name=x", "application/x-www-form-urlencoded")
    assert_error(form, 415, "unsupported_media_type")


def test_an_address_or_a_number_of_nothing_is_a_404_in_json(alice: Person) -> None:
    numbers = (f"/v1/agents/{number}" for number in ("1x", 10**30))
    for path in ["/v1/nothing", "/v1/agents/", "/nothing", "/v1/sessions/not-a-uuid", *numbers]:
        assert_error(api(alice.session).delete(f"/api{path}"), 404, "not_found")


def test_a_method_a_route_does_not_have_is_a_405(alice: Person) -> None:
    answer = api(alice.session).put(AGENTS, {}, format="json")
    assert_error(answer, 405, "method_not_allowed")
    assert answer["Allow"] == "GET, POST, HEAD, OPTIONS"


def test_without_a_known_token_a_401_asks_for_bearer(db: None) -> None:
    for header in ["", "Basic abc", "Bearer", "Bearer ", "Bearer cw_pat_1", "Bearer \xff", "nonsense"]:
        answer = Client().get(AGENTS, headers={"authorization": header} if header else {})
        assert_error(answer, 401, "unauthorized")
        assert answer["WWW-Authenticate"].startswith("Bearer"), header


def test_an_unknown_page_is_a_page_and_asks_no_database(client: Client) -> None:
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert b"<h1>Not found</h1>" in answer.content


def test_several_wrong_fields_make_one_sentence_each(alice: Person) -> None:
    message = assert_error(post(alice, b'{"concurrencyCap": 99}'), 400, "validation_failed")
    assert "name: This field is required." in message
    assert "concurrencyCap: " in message


def test_the_place_in_a_list_is_named(alice: Person) -> None:
    prompts = {"suggestedPrompts": ["good", "x" * 401]}
    answer = api(alice.session).patch(f"{AGENTS}/{make_agent(alice.user).pk}", prompts, format="json")
    assert answer.json()["message"].startswith("suggestedPrompts[1]: ")


def test_an_unforeseen_failure_tells_nothing_and_is_logged(
    alice: Person, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(APIView):
        def get(self, request: Any) -> Any:
            raise RuntimeError("the secret reason")

    request = APIRequestFactory().get("/api/v1/broken", HTTP_AUTHORIZATION=f"Bearer {alice.session}")
    with caplog.at_level(logging.ERROR):
        answer = Broken.as_view()(request).render()
    assert answer.status_code == 500
    assert json.loads(answer.content) == {"error": "internal", "message": "internal error"}
    assert "the secret reason" in caplog.text


def test_django_s_own_refusals_speak_json_to_programs_and_html_to_people() -> None:
    for handler, status, code in [
        (error_responses.bad_request, 400, "validation_failed"),
        (error_responses.forbidden, 403, "forbidden"),
        (error_responses.not_found, 404, "not_found"),
    ]:
        answer = handler(RequestFactory().get("/api/v1/x"), Exception("the secret reason"))
        assert (answer.status_code, json.loads(answer.content)["error"]) == (status, code), status
        page = handler(RequestFactory().get("/x"), Exception("the secret reason"))
        assert (page.status_code, page["Content-Type"]) == (status, "text/html; charset=utf-8"), status
        assert b"secret" not in page.content, status


def test_a_broken_view_outside_drf_is_a_500_without_a_traceback() -> None:
    answer = error_responses.server_error(RequestFactory().get("/api/v1/x"))
    assert json.loads(answer.content) == {"error": "internal", "message": "internal error"}
    assert error_responses.server_error(RequestFactory().get("/x")).status_code == 500


def test_a_cookie_writes_only_from_our_own_pages(alice: Person) -> None:
    path = "/api/v1/blocks/bob"
    for headers, status in [
        ({"origin": OURS}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://evil.example", "sec-fetch-site": "same-origin"}, 403),
        ({}, 403),
    ]:
        answer = browser(alice.session).delete(path, headers=headers)
        assert answer.status_code == status, (headers, status)
        if status == 403:
            assert_error(answer, 403, "forbidden_origin")


def test_a_cookie_reads_from_anywhere_and_a_bearer_token_writes_from_anywhere(alice: Person) -> None:
    agent, foreign = make_agent(alice.user), {"origin": "http://evil.example"}
    assert browser(alice.session).get(AGENTS, headers=foreign).status_code == 200
    assert api(alice.session).delete(f"{AGENTS}/{agent.pk}", headers=foreign).status_code == 204


def test_a_bearer_token_beside_a_cookie_decides(alice: Person, bob: Person) -> None:
    both = browser(alice.session).get("/api/v1/me", headers={"authorization": f"Bearer {bob.session}"})
    assert both.json()["githubLogin"] == "bob"


def test_a_malformed_cookie_beside_ours_does_no_harm(alice: Person) -> None:
    answer = Client().get("/api/v1/me", headers={"cookie": f'odd={{"a":1}}; {COOKIE}={alice.session}'})
    assert answer.status_code == 200


def test_the_last_use_is_noted_once_a_minute(alice: Person) -> None:
    credential = Credential.objects.get(prefix=alice.session[:14])
    assert credential.last_used_at is None
    api(alice.session).get("/api/v1/me")
    first = Credential.objects.get(pk=credential.pk).last_used_at
    assert first is not None
    api(alice.session).get("/api/v1/me")
    assert Credential.objects.get(pk=credential.pk).last_used_at == first
