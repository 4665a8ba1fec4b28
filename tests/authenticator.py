"""A software authenticator: makes passkeys and signs with them, honestly unless told otherwise."""

import hashlib
import json
import secrets
import struct
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256

PRESENT, VERIFIED, HAS_KEY = 0x01, 0x04, 0x40


def text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Authenticator:
    """One device with one passkey, at the page of an origin."""

    origin: str = "https://hub.example"
    host: str = "hub.example"
    flags: int = PRESENT | VERIFIED
    count: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))

    def make(self, options: dict[str, Any], **lies: str) -> str:
        """The answer that a browser sends for a new passkey."""
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        size = struct.pack(">H", len(self.credential_id))
        held = bytes(16) + size + self.credential_id + cbor2.dumps(cose)
        statement = {"fmt": "none", "attStmt": {}, "authData": self._data(HAS_KEY) + held}
        response = {"attestationObject": text(cbor2.dumps(statement))}
        return self._answer(response, self._client_data("webauthn.create", options, lies))

    def sign(self, options: dict[str, Any], **lies: str) -> str:
        """The answer that a browser sends to sign in."""
        client_data, data = self._client_data("webauthn.get", options, lies), self._data(0)
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ECDSA(SHA256()))
        return self._answer({"authenticatorData": text(data), "signature": text(signature)}, client_data)

    def _data(self, flags: int) -> bytes:
        hashed = hashlib.sha256(self.host.encode()).digest()
        return hashed + bytes([self.flags | flags]) + struct.pack(">I", self.count)

    def _client_data(self, kind: str, options: dict[str, Any], lies: dict[str, str]) -> bytes:
        honest = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return json.dumps(honest | lies).encode()

    def _answer(self, response: dict[str, str], client_data: bytes) -> str:
        name = text(self.credential_id)
        response["clientDataJSON"] = text(client_data)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
