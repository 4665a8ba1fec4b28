"""The public command line as it sounds on the wire: node's headers, bodies as JSON.stringify writes them."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from lab.hub_process import HubProcess

WITHIN_S = 90
Json = Any


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body as the client parses it; an empty one is null."""
        return json.loads(self.body) if self.body else None


class Failed(Exception):
    """A command that prints an error and exits: the code is `error`, what the user sees is `message`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.body!r}")
        told = answer.json
        assert set(told) == {"error", "message"}, told
        assert all(isinstance(one, str) and one for one in told.values()), told
        self.status, self.code, self.message = answer.status, told["error"], told["message"]


def stringify(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True)
class Claw:
    """One command line's calls. `token`: its session; the two code exchanges have none, and another name."""

    url: str
    token: str | None = None
    agent: str = "node"

    def send(self, method: str, path: str, body: Json = ...) -> Answer:
        """One request, byte by byte."""
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=WITHIN_S)
        try:
            connection.putrequest(method, f"/api/v1{path}", skip_host=True, skip_accept_encoding=True)
            for name, value in self._headers(method, place.netloc, body).items():
                connection.putheader(name, value)
            connection.endheaders(stringify(body) if body is not ... else None)
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())
        finally:
            connection.close()

    def call(self, method: str, path: str, body: Json = ...) -> Json:
        """A command's request: the value of its answer, null for 204.

        Raises:
            Failed: it is not a 2xx.
        """
        answer = self.send(method, path, body)
        if not 200 <= answer.status < 300:
            raise Failed(answer)
        if answer.status != 204:
            assert answer.headers["content-type"].startswith("application/json"), answer
            assert answer.json is not None, "an empty 200 is parsed as null, and read from"
        return answer.json

    def _headers(self, method: str, host: str, body: Json) -> dict[str, str]:
        headers = {"host": host, "connection": "keep-alive"}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not ...:
            headers |= {"Content-Type": "application/json"}
        headers |= {"accept": "*/*", "accept-language": "*", "sec-fetch-mode": "cors", "user-agent": self.agent}
        headers |= {"accept-encoding": "gzip, deflate"}
        if method in ("POST", "PATCH"):
            headers |= {"content-length": "0" if body is ... else str(len(stringify(body)))}
        return headers


def claw(hub: HubProcess, login: str, *, admin: bool = False) -> Claw:
    """A command line that is signed in."""
    return Claw(hub.url, hub.mint(login, "session", admin=admin))
