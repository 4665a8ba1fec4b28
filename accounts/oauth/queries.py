"""The query strings of the starts and the callback, for the description; `accounts.oauth.asked` checks them."""

from drf_spectacular.utils import OpenApiParameter

from accounts.oauth.bodies import CHALLENGE_PATTERN, MACHINE_ID_PATTERN, STATE_PATTERN

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
