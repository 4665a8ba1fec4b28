"""The query strings of the starts and the callback, for the description; `accounts.oauth.asked` checks them."""

from drf_spectacular.utils import OpenApiParameter

METHODS = ["S256"]

_CLIENT = {
    "redirect_uri": "where the browser comes back to: loopback, any port, a plain path",
    "state": "comes back as it was",
    "code_challenge": "the SHA-256 of the verifier in base64url",
}
_MACHINE = OpenApiParameter("machine_id", str, description="the installation; its older session or token ends")


def _client(*, required: bool) -> list[OpenApiParameter]:
    method = OpenApiParameter("code_challenge_method", str, required=required, enum=METHODS)
    told = [OpenApiParameter(name, str, required=required, description=text) for name, text in _CLIENT.items()]
    return [*told, method, _MACHINE]


CLI_START = [
    *_client(required=False),
    OpenApiParameter("next", str, description="without redirect_uri: the path this browser goes to, signed in"),
]
APP_START = [
    *_client(required=True),
    OpenApiParameter("app_name", str, required=True, description="what the user is told"),
]
CALLBACK = [OpenApiParameter(name, str, description="of GitHub") for name in ("code", "state", "error")]
