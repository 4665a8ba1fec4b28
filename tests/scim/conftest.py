"""An identity provider that calls SCIM: in this process by Django's client, or over HTTP."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from accounts.scim_tokens import make_scim_token

BASE = "/scim/v2"


@dataclass
class Directory:
    """An identity provider with the hub's SCIM token; sends requests as providers do."""

    token: str
    media_type: str = "application/scim+json"

    def send(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """The response to a request; `path`: below `/scim/v2`."""
        headers = {"authorization": f"Bearer {self.token}"}
        if method == "GET":
            return Client().get(BASE + path, query, headers=headers)
        sent = body if isinstance(body, str | bytes) else json.dumps(body)
        return Client().generic(
            method, BASE + path, "" if body is None else sent, self.media_type, headers=headers
        )

    def create(self, kind: str, **resource: Any) -> Any:
        """The resource that a POST made."""
        made = self.send("POST", f"/{kind}", resource)
        assert made.status_code == 201, made.content
        return made.json()

    def patch(self, path: str, *operations: dict[str, Any]) -> Any:
        """The response to a PATCH."""
        schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]
        return self.send("PATCH", path, {"schemas": schemas, "Operations": operations})

    def find(self, kind: str, **query: str) -> list[Any]:
        """The resources of a list."""
        found = self.send("GET", f"/{kind}", **query)
        assert found.status_code == 200, found.content
        assert found["Content-Type"] == "application/scim+json"
        return list(found.json()["Resources"]) if found.json()["totalResults"] else []


@pytest.fixture
def directory(db: None) -> Directory:
    """The identity provider of the hub."""
    return Directory(make_scim_token().token)
