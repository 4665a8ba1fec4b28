"""Signatures: the test vectors in Python and in Node, what must not verify, ages, and the command that signs."""

import hmac
import json
import math
import os
import shutil
import subprocess
import sys
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode
from clawbridge.agnt.signing import (
    SigningKeys,
    canonical_json,
    derive_tenant_key,
    sign_body,
    sign_payload,
    verify_body,
    verify_payload,
)
from kit import strict_json
from lab import ROOT

HERE = Path(__file__).parent
VECTORS: list[dict[str, Any]] = json.loads((HERE / "vectors.json").read_text())
K1 = b"test-signing-key-0001"
SENDER = "agnt_consumer_42"
TS = 1_775_988_123
V2 = {"query": "sunset dinner", "location": "canggu", "limit": 5}
V2_SIG = "bda690bfb079494f8be82160ce798ed45dc8a08437aed5f7a0fe7dc62fd4d484"
V3 = {"query": "café ☕ 夕日 🦞", "user_note": 'naïve\tTab "q" \\ / </x>'}
WRITTEN_BY_PYTHON_ALONE = {"V5 numbers", "float"}  # JavaScript has no 7.0, and 1e-07 is 1e-7 there


def keys(current: bytes = K1, **more: Any) -> SigningKeys:
    return SigningKeys(current, **more)


def verify(payload: dict[str, Any], *, now_s: float = TS, **more: Any) -> str:
    return verify_payload(payload, **({"keys": keys(), "sender": SENDER} | more), now_s=now_s)


def refusal(payload: dict[str, Any], **more: Any) -> ErrorCode:
    with pytest.raises(EnvelopeRefused) as refused:
        verify(payload, **more)
    return refused.value.code


def signed(payload: dict[str, Any], at_s: int = TS, key: bytes = K1) -> dict[str, Any]:
    return sign_payload(payload, key=key, sender=SENDER, at_s=at_s)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, Any]) -> None:
    key, sender = bytes.fromhex(vector["key"]), vector["sender"]
    ours = sign_payload(json.loads(vector["payload"]), key=key, sender=sender, at_s=vector["ts"])
    assert ours["_sig"] == vector["sig"]
    del ours["_sig"]
    assert canonical_json(ours).decode() == vector["canonical"]
    ours["_sig"] = vector["sig"]
    assert verify(ours, keys=keys(key), sender=sender, now_s=vector["ts"]) == vector["sig"]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_vectors_in_node() -> None:
    command = ["node", str(HERE / "vectors.mjs"), str(HERE / "vectors.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["signed"]) == len(VECTORS)
    for vector, theirs in zip(VECTORS, answer["signed"], strict=True):
        assert theirs["sig"] == vector["sig"], vector["name"]
        if vector["name"] not in WRITTEN_BY_PYTHON_ALONE:
            assert (theirs["own"], theirs["ownSig"]) == (vector["canonical"], vector["sig"])
    payload = strict_json.read(answer["body"].encode())["payload"]
    assert verify(payload, sender="js_agent", text=answer["body"]) == payload["_sig"]
    assert refusal(payload, sender="js_agent") == ErrorCode.INVALID_SIGNATURE


@pytest.mark.parametrize(
    ("payload", "sig"),
    [
        pytest.param(V2, "244e1725116cc2ba72e91f5cef3202559a9be2a778293e5885cf4d5f82f98223", id="spaces"),
        pytest.param(V2, "018e122571123281153bba4bb50f7c11ccb9fdfe73a01a7165eceb89e30e6195", id="unsorted"),
        pytest.param(V2, "vaaQv7B5SU+L6CFgznmO1F3IoIQ3rtX3oP59xi/U1IQ=", id="base64"),
        pytest.param(V2, "be3dcbd58e8834085c577f4ef5a49403b7079dbebda40e8ad1c060ac50a6a238", id="limit 6"),
        pytest.param(V3, "f684b4983a3414d21b391cdf0c4024fc6be6f9439036b9581f2fc4389c4bddaa", id="not ASCII"),
        pytest.param(V2, V2_SIG.upper(), id="upper case"),
        pytest.param(V2, V2_SIG[:-1], id="short"),
        pytest.param(V2, V2_SIG + "0", id="long"),
        pytest.param(V2, V2_SIG + "\n", id="line end"),
        pytest.param(V2, V2_SIG[:-1] + "é", id="é"),
        pytest.param(V2, V2_SIG[:-1] + "４", id="full-width digit"),
        pytest.param(V2, "", id="empty"),
        pytest.param(V2, None, id="null"),
        pytest.param(V2, 7, id="number"),
        pytest.param(V2, [V2_SIG], id="array"),
    ],
)
def test_must_not_verify(payload: dict[str, Any], sig: Any) -> None:
    wrong = payload | {"_ts": TS, "_from": SENDER, "_sig": sig}
    text = json.dumps({"payload": wrong})
    assert refusal(wrong) == refusal(wrong, text=text) == ErrorCode.INVALID_SIGNATURE
    assert refusal(wrong, is_demanded=False) == ErrorCode.INVALID_SIGNATURE


@pytest.mark.parametrize("change", [{"limit": 6}, {"limit": 5.0}, {"more": 1}, {"_ts": TS + 1}, {"_from": "x"}])
def test_a_changed_payload_does_not_verify(change: dict[str, Any]) -> None:
    assert verify(signed(V2)) == V2_SIG
    assert refusal(signed(V2) | change) == ErrorCode.INVALID_SIGNATURE
    assert refusal(signed(V2), sender="other") == ErrorCode.INVALID_SIGNATURE


@pytest.mark.parametrize("time", [{"_ts": ts} for ts in (True, float(TS), str(TS), None, [TS])] + [{}])
def test_the_time_is_an_integer_and_required(time: dict[str, Any]) -> None:
    payload = V2 | {"_from": SENDER} | time
    payload["_sig"] = hmac.digest(K1, canonical_json(payload), "sha256").hex()
    assert refusal(payload) == ErrorCode.INVALID_SIGNATURE


def test_age() -> None:
    assert verify(signed(V2), now_s=TS + 300)
    assert refusal(signed(V2), now_s=TS + 300.5) == ErrorCode.TIMESTAMP_EXPIRED
    assert refusal(signed(V2), now_s=TS + 301) == ErrorCode.TIMESTAMP_EXPIRED
    assert verify(signed(V2), now_s=TS - 60)
    assert refusal(signed(V2), now_s=TS - 61) == ErrorCode.TIMESTAMP_EXPIRED
    assert refusal(signed(V2, at_s=0)) == ErrorCode.TIMESTAMP_EXPIRED
    assert refusal(signed(V2, at_s=10**400)) == ErrorCode.TIMESTAMP_EXPIRED
    assert refusal(signed(V2) | {"limit": 6}, now_s=TS + 301) == ErrorCode.INVALID_SIGNATURE


def test_an_unsigned_payload() -> None:
    assert refusal(V2) == ErrorCode.INVALID_SIGNATURE
    assert verify(V2, is_demanded=False) == ""


def test_rotation() -> None:
    old, new = signed(V2, key=b"old"), signed(V2, key=b"new")
    both = keys(b"new", previous=b"old", previous_until_s=TS + 300)
    assert verify(new, keys=both)
    assert verify(old, keys=both, now_s=TS + 299)
    assert refusal(old, keys=both, now_s=TS + 300) == ErrorCode.INVALID_SIGNATURE
    assert refusal(old, keys=keys(b"new")) == ErrorCode.INVALID_SIGNATURE
    assert verify(new, keys=both, now_s=TS + 300)
    empty = signed(V2, key=b"")
    assert refusal(empty, keys=keys(b"new", previous_until_s=TS + 300)) == ErrorCode.INVALID_SIGNATURE


@pytest.mark.parametrize("token", ["1e-7", "10000000000000000.0", "1E3", "-0", "7.00", "1e21"])
def test_numbers_as_received(token: str) -> None:
    canonical = f'{{"_from":"{SENDER}","_ts":{TS},"a":[{{"é":{token}}}],"b":"x","c":null}}'.replace("é", "\\u00e9")
    sig = hmac.digest(K1, canonical.encode(), "sha256").hex()
    text = f'{{"payload":{{"b":"x","a":[{{"é":{token}}}],"c":null,"_sig":"{sig}","_ts":{TS},"_from":"{SENDER}"}}}}'
    payload = strict_json.read(text.encode())["payload"]
    assert verify(payload, text=text) == sig
    assert refusal(payload, text=text.replace(token, "4")) == ErrorCode.INVALID_SIGNATURE


def test_numbers_that_are_none_are_not_signed(subtests: pytest.Subtests) -> None:
    for number in (math.nan, math.inf, -math.inf):
        with subtests.test(number=number), pytest.raises(ValueError, match="not JSON compliant"):
            signed({"a": [number]})


def test_signing_leaves_the_payload_as_it_is() -> None:
    payload = {"_ts": 1, "_sig": "00"}
    signed(payload)
    assert payload == {"_ts": 1, "_sig": "00"}


def test_the_key_of_a_tenant() -> None:
    derived = derive_tenant_key(b"master-secret-0001", "tenant-7")
    assert derived.hex() == "07fa3143d1b796c98826da7d7c928e641d4a59fd83c14302ff9e6b647aff5828"
    with pytest.raises(ValueError, match="empty"):
        derive_tenant_key(b"", "tenant-7")


def check_body(header: str, body: bytes = b'{"a":1}', now_s: float = TS) -> None:
    both = keys(b"new", previous=K1, previous_until_s=TS + 1000)
    verify_body(header, body, keys=both, now_s=now_s)


def test_the_signature_of_a_body(subtests: pytest.Subtests) -> None:
    header = sign_body(b'{"a":1}', key=K1, at_s=TS)
    by_hand = hmac.digest(K1, f'{TS}.{{"a":1}}'.encode(), "sha256").hex()
    assert header == f"ts={TS},v1={by_hand}"
    check_body(header)
    check_body(sign_body(b'{"a":1}', key=b"new", at_s=TS))
    check_body(header, now_s=TS + 300)
    for wrong, body, now_s, code in (
        (header, b'{"a":1} ', TS, ErrorCode.INVALID_SIGNATURE),
        (header.replace(str(TS), str(TS + 1)), b'{"a":1}', TS, ErrorCode.INVALID_SIGNATURE),
        (header, b'{"a":1}', TS + 301, ErrorCode.TIMESTAMP_EXPIRED),
        (header, b'{"a":1}', TS - 61, ErrorCode.TIMESTAMP_EXPIRED),
    ):
        with subtests.test(wrong=wrong, body=body, now_s=now_s):
            with pytest.raises(EnvelopeRefused) as refused:
                check_body(wrong, body, now_s)
            assert refused.value.code == code


@pytest.mark.parametrize("header", ["", "ts=,v1=", f"ts={TS}", f"ts=0{TS},v1={V2_SIG}", f"ts={TS},v1={V2_SIG}é"])
def test_a_header_that_is_none(header: str) -> None:
    with pytest.raises(EnvelopeRefused) as refused:
        check_body(header)
    assert refused.value.code == ErrorCode.INVALID_SIGNATURE


# `manage.py agnt_sign`.


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


def test_the_command_signs_as_python_writes_numbers() -> None:
    vector = VECTORS[-1]
    lines = sign(vector["payload"], key=f"hex:{vector['key']}", sender=vector["sender"], ts=vector["ts"])
    assert lines == [vector["canonical"], vector["sig"]]
    for number, sig in (
        ("7", "086fc1751bbc225337eafda5f332d612556da72f82fc6ba1a3261e5f20cba50e"),
        ("7.0", "5f4756bad8d8d2e9281329b64ed446dc0bfa1558b349863ecbca1431878f4091"),
    ):
        assert sign(f'{{"a":{number}}}', sender=SENDER) == [f'{{"_from":"{SENDER}","_ts":{TS},"a":{number}}}', sig]
    assert '"a":1e-07}' in sign('{"a":1E-7}')[0]


def test_the_command_refuses_what_cannot_be_signed(subtests: pytest.Subtests) -> None:
    payloads: list[tuple[str | bytes, str]] = [
        ("", "not JSON"),
        ("[1]", "want an object"),
        ('{"a":NaN}', "NaN is not JSON"),
        ('{"a":1,"a":2}', "names one key twice"),
        ('{"a":"\\ud800"}', "lone surrogate"),
        (b'{"a":"\xff"}', "not UTF-8"),
        ('{"a":"' + "x" * 1_048_576 + '"}', "is over"),
    ]
    for payload, complaint in payloads:
        with subtests.test(payload=payload), pytest.raises(CommandError, match=complaint):
            sign(payload)
    options: list[tuple[dict[str, Any], str]] = [
        ({"key": ""}, "the secret is empty"),
        ({"key": "hex:xx"}, "want hex digits"),
        ({"sender": "two words"}, "--from"),
        ({"ts": -1}, "want Unix seconds"),
    ]
    for wrong, complaint in options:
        with subtests.test(options=wrong), pytest.raises(CommandError, match=complaint):
            sign("{}", **wrong)


def test_it_is_a_program(tmp_path: Path) -> None:
    """Without a database, and with the payload on standard input."""
    vector = VECTORS[1]
    key = bytes.fromhex(vector["key"]).decode()
    command = [sys.executable, "manage.py", "agnt_sign", "--key", key, "--from", vector["sender"]]
    command += ["--ts", str(vector["ts"])]
    env = {"PATH": os.environ["PATH"], "DATA_DIR": str(tmp_path / "absent")}
    done = subprocess.run(
        command, input=vector["payload"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"{vector['canonical']}\n{vector['sig']}\n"), done.stderr
    assert not list(tmp_path.rglob("*sqlite*"))
