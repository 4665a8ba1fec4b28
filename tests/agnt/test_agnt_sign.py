"""`manage.py agnt_sign`: the test vectors, and what it refuses."""

import json
import os
import subprocess
import sys
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from lab import ROOT

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text())
TS = 1_775_988_123


def sign(
    payload: str | bytes, *, key: str = "test-signing-key-0001", sender: str = "a", ts: int = TS
) -> list[str]:
    """The lines that it prints."""
    printed = StringIO()
    body = payload.encode() if isinstance(payload, str) else payload
    call_command(
        "agnt_sign", f"--key={key}", f"--from={sender}", f"--ts={ts}", stdin=BytesIO(body), stdout=printed
    )
    return printed.getvalue().splitlines()


def test_a_vector() -> None:
    vector = VECTORS[-1]
    lines = sign(vector["payload"], key=f"hex:{vector['key']}", sender=vector["sender"], ts=vector["ts"])
    assert lines == [vector["canonical"], vector["sig"]]


def test_a_secret_as_text_and_numbers_as_python_writes_them() -> None:
    prefix = f'{{"_from":"agnt_consumer_42","_ts":{TS},'
    for number, sig in (
        ("7", "086fc1751bbc225337eafda5f332d612556da72f82fc6ba1a3261e5f20cba50e"),
        ("7.0", "5f4756bad8d8d2e9281329b64ed446dc0bfa1558b349863ecbca1431878f4091"),
    ):
        assert sign(f'{{"a":{number}}}', sender="agnt_consumer_42") == [f'{prefix}"a":{number}}}', sig]
    assert sign('{"a":1E-7}', sender="agnt_consumer_42")[0] == prefix + '"a":1e-07}'


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "want an object"),
        ('{"a":NaN}', "NaN is not JSON"),
        ('{"a":1,"a":2}', "names one key twice"),
        ('{"a":"\\ud800"}', "lone surrogate"),
        (b'{"a":"\xff"}', "not UTF-8"),
        ('{"a":"' + "x" * 1_048_576 + '"}', "is over"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_a_payload_that_is_none(payload: str | bytes, complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        sign(payload)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"key": ""}, "the secret is empty"),
        ({"key": "hex:xx"}, "want hex digits"),
        ({"sender": "two words"}, "--from"),
        ({"sender": ""}, "--from"),
        ({"ts": -1}, "want Unix seconds"),
    ],
)
def test_options_that_cannot_be_right(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        sign("{}", **options)


def test_it_is_a_program(tmp_path: Path) -> None:
    """Without a database, and with the payload on standard input."""
    vector = VECTORS[1]
    key = bytes.fromhex(vector["key"]).decode()
    command = [sys.executable, "manage.py", "agnt_sign", "--key", key, "--from", vector["sender"]]
    done = subprocess.run(
        [*command, "--ts", str(vector["ts"])],
        input=vector["payload"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DATA_DIR": str(tmp_path / "absent")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{vector['canonical']}\n{vector['sig']}\n"), done.stderr
    assert not list(tmp_path.rglob("*sqlite*"))
