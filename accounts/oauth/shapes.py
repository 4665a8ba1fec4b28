"""The bodies and query strings of sign-in for the description; the views read them field by field."""

from typing import Annotated, Literal

from drf_spectacular.utils import OpenApiParameter
from msgspec import UNSET, Meta, Struct, UnsetType

from accounts.oauth.authorization_requests import CHALLENGE, MACHINE_ID, MAX_APP_NAME_CHARS, STATE, VERIFIER

END = r"\Z"


def as_pattern(checked: str) -> str:
    """A regular expression of Python's for a whole text, as JSON Schema writes it."""
    return f"^{checked.removesuffix(END)}$"


CHALLENGE_PATTERN, STATE_PATTERN = as_pattern(CHALLENGE.pattern), as_pattern(STATE.pattern)
MACHINE_ID_PATTERN = as_pattern(MACHINE_ID.pattern)


class CodeExchange(Struct):
    """A code, and the verifier of the challenge it was asked for with."""

    code: str
    code_verifier: Annotated[str, Meta(pattern=as_pattern(VERIFIER.pattern))]


class ClientToken(Struct):
    """The code of a registered client, with `redirect_uri` and `code_verifier`; or its refresh token.

    `scope`: with a refresh token, some of the scopes that the user allowed; without, all of these.
    """

    grant_type: Literal["authorization_code", "refresh_token"]
    client_id: str
    code: str = ""
    redirect_uri: str = ""
    code_verifier: Annotated[str, Meta(pattern=as_pattern(VERIFIER.pattern))] | UnsetType = UNSET
    refresh_token: str = ""
    scope: str = ""
    resource: str = ""


class DeviceStart(Struct):
    """Which app, on which machine."""

    app_name: Annotated[str, Meta(min_length=1, max_length=MAX_APP_NAME_CHARS)]
    machine_id: Annotated[str, Meta(pattern=MACHINE_ID_PATTERN)] = ""


class DevicePoll(Struct):
    """The device's own code."""

    device_code: str


COMES_BACK_TO = "where the browser comes back to: loopback, any port, a plain path"
CHALLENGE_TEXT = "the SHA-256 of the verifier in base64url"
MACHINE_TEXT = "the installation; its older session or token ends"


def _client(*, required: bool) -> list[OpenApiParameter]:
    return [
        OpenApiParameter("redirect_uri", str, required=required, description=COMES_BACK_TO),
        OpenApiParameter(
            "state", str, required=required, pattern=STATE_PATTERN, description="comes back as it was"
        ),
        OpenApiParameter(
            "code_challenge", str, required=required, pattern=CHALLENGE_PATTERN, description=CHALLENGE_TEXT
        ),
        OpenApiParameter("code_challenge_method", str, required=required, enum=["S256"]),
        OpenApiParameter("machine_id", str, pattern=MACHINE_ID_PATTERN, description=MACHINE_TEXT),
    ]


CLI_START = [
    *_client(required=False),
    OpenApiParameter("next", str, description="without redirect_uri: the path this browser goes to, signed in"),
]
APP_START = [
    *_client(required=True),
    OpenApiParameter("app_name", str, required=True, description="what the user is told"),
]
OIDC_START = [
    OpenApiParameter("number", int, "path", description="which provider, from 1"),
    OpenApiParameter("next", str, description="the path this browser goes to, signed in"),
]
OIDC_CALLBACK = [
    OpenApiParameter("number", int, "path", description="which provider, from 1"),
    *(OpenApiParameter(name, str, description="of the provider") for name in ("code", "state", "error", "iss")),
]
CALLBACK = [OpenApiParameter(name, str, description="of GitHub") for name in ("code", "state", "error")]
