"""Strict JSON means the same whichever of its two decoders reads a text."""

import json

import pytest

from kit.strict_json import BadShape, NotJson, read


def test_a_key_that_comes_twice_is_refused(subtests: pytest.Subtests) -> None:
    for text in [
        '{"a":1,"a":2}',
        '{"a":{"b":1,"b":2}}',
        '[{"a":1},{"a":1,"a":1}]',
        '{"a":":","a":":"}',
        '{"a":1,"a":"\\u003a"}',
        '{"a":1,"\\u0061":2}',
        '{"a":1,"a":{"b":":"}}',
    ]:
        with subtests.test(text=text), pytest.raises(BadShape, match="one key twice"):
            read(text)


def test_a_sound_text_is_what_json_says() -> None:
    for text in [
        '{"url":"https://x.example:1/?a=:","at":"12:00:00"}',
        '{ "a" : [ 1 , -0 , -0.5e-3 , 18446744073709551616 , 1e308 , null , true ] }',
        '{"":{"":{"":"\\\\ \\" \\/ \\n \\u00e9 \\u003a é 😀"}}}',
        f"{'[' * 64}{']' * 64}",
        '"text"',
        "0",
        "null",
    ]:
        assert repr(read(text)) == repr(json.loads(text)), text


def test_what_is_not_json_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["", "NaN", "[1,]", "01", '"\x01"', "{}x", "-Infinity", '{"a" 1}', "\x0b1", "1."]:
        with subtests.test(text=text), pytest.raises(NotJson):
            read(text)


def test_what_no_sound_program_sends_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["1e999", "-1e400", "[" * 65 + "]" * 65]:
        with subtests.test(text=text), pytest.raises(BadShape):
            read(text)
