"""The steps of docs/howto/receive-webhooks.md for receivers work as they are written there."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab import ROOT
from lab.receivers import Received, receiving
from tests.native.rows import Person
from tests.webhooks.subscriptions import deliver, happen, subscribed
from webhooks.service.subscriptions import roll_secret
from webhooks.surface.pages import verify_recipes

pytestmark = pytest.mark.django_db
PAGE = (ROOT / "docs" / "howto" / "receive-webhooks.md").read_text()


@pytest.fixture
def arrived(alice: Person) -> tuple[str, Received]:
    """A secret and what it signed, together with another."""
    with receiving() as receiver:
        old = subscribed(alice.user, receiver.url)
        assert roll_secret(old.subscription.pk)
        happen(alice.user, payload={"text": "grüße ${HOME} 'and' \\ all"})
        deliver()
        return old.secret, receiver.received[0]


def test_by_hand_in_python(arrived: tuple[str, Received]) -> None:
    secret, one = arrived
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def is_ours" in block]
    exec(code, names := {})
    is_ours = names["is_ours"]
    header = one.headers["x-clawborrator-signature"]
    assert is_ours(secret, header, one.body)
    assert not is_ours(secret, header, one.body + b" ")
    assert not is_ours(secret + "x", header, one.body)
    assert not is_ours(secret, re.sub(r"t=\d+", "t=1000000000", header), one.body)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_by_hand_in_typescript(arrived: tuple[str, Received], tmp_path: Path) -> None:
    secret, one = arrived
    (code,) = re.findall(r"```ts\n(.*?)```", PAGE, re.DOTALL)
    assert code in verify_recipes()  # the page of a webhook shows it
    program = re.sub(r": (string|Buffer|boolean)\b", "", code)  # not every node takes types away
    header = one.headers["x-clawborrator-signature"]
    late = re.sub(r"t=\d+", "t=1000000000", header)
    tries = [[secret, header, ""], [secret, header, " "], [f"{secret}x", header, ""], [secret, late, ""]]
    tries += [[secret, broken, ""] for broken in ("", "v1", "t=,v1=", header.replace("v1=", "v1=é"))]
    (tmp_path / "verify.mjs").write_text(
        f"{program}\nconst body = process.argv[2];\n"
        "console.log(JSON.stringify(JSON.parse(process.argv[3]).map(([secret, header, more]) =>"
        " isOurs(secret, header, Buffer.from(body + more)))));\n"
    )
    command = ["node", "verify.mjs", one.body.decode(), json.dumps(tries)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, *[False] * 7]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_by_hand_in_a_shell(arrived: tuple[str, Received], tmp_path: Path) -> None:
    secret, one = arrived
    (tmp_path / "body").write_bytes(one.body)
    script = re.search(r"In a shell.*?\n\n(.*?)\n## ", PAGE, re.DOTALL)
    assert script
    header = one.headers["x-clawborrator-signature"]
    env = os.environ | {
        "SECRET": secret,
        "T": header.split(",")[0].removeprefix("t="),
        "WEBHOOK_ID": one.headers["webhook-id"],
        "WEBHOOK_TIMESTAMP": one.headers["webhook-timestamp"],
    }
    done = subprocess.run(
        ["sh", "-ec", script[1]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=20
    )
    assert done.returncode == 0, done.stderr
    by_text, by_bytes = done.stdout.splitlines()
    assert f"v1={by_text.split()[-1]}" in header.split(",")
    assert f"v1,{by_bytes}" in one.headers["webhook-signature"].split()
