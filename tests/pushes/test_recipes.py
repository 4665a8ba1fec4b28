"""The steps of docs/howto/receive-push.md for receivers work as they are written there."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from accounts.signing import public_keys
from lab import ROOT
from lab.receivers import Received, Receiver, receiving
from tests.native.rows import Person
from tests.pushes.client import SIGNATURE
from tests.pushes.rows import config_of, push_of, send_due

pytestmark = pytest.mark.django_db
PAGE = (ROOT / "docs" / "howto" / "receive-push.md").read_text()


@pytest.fixture
def arrived(alice: Person) -> tuple[Receiver, Received]:
    """A push that came."""
    with receiving() as receiver:
        push_of(config_of(alice, receiver.url), {"statusUpdate": {"text": "grüße ${HOME} 'and' \\ all"}})
        assert send_due() == 1
        return receiver, receiver.received[0]


def test_in_python(arrived: tuple[Receiver, Received]) -> None:
    receiver, one = arrived
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def is_ours" in block]
    exec(code, names := {})
    is_ours, signature, keys = names["is_ours"], one.headers[SIGNATURE], public_keys()
    assert is_ours(keys, signature, one.body, receiver.url)
    assert not is_ours(keys, signature, one.body + b" ", receiver.url)
    assert not is_ours(keys, signature, one.body, "https://other.example.org/")
    others = {"keys": [ECKey.generate_key("P-256").as_dict(private=False) | {"kid": keys["keys"][0]["kid"]}]}
    with pytest.raises(JoseError):
        is_ours(others, signature, one.body, receiver.url)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_in_a_shell(arrived: tuple[Receiver, Received], tmp_path: Path) -> None:
    _, one = arrived
    (tmp_path / "body").write_bytes(one.body)
    script = re.search(r"In a shell.*?\n\n(.*?)\n## ", PAGE, re.DOTALL)
    assert script
    env = {"PATH": "/usr/bin:/bin", "SIGNATURE": one.headers[SIGNATURE]}
    done = subprocess.run(
        ["sh", "-c", script[1]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=20
    )
    claims, _, digest = done.stdout.rpartition("}")
    assert json.loads(claims + "}")["request_body_sha256"] == digest.split()[0]
