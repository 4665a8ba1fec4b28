"""The credentials of both descriptions (docs/reference/tokens.md)."""

from accounts.authn import COOKIE as COOKIE_NAME
from hub.descriptions.shapes import Json
from kit.describe import BEARER, CHANNEL_TOKEN, COOKIE

SCHEMES: dict[str, Json] = {
    BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A session token (cw_sess_…) or an app token (cw_app_…).",
    },
    COOKIE: {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE_NAME,
        "description": "The same session in a browser; counts for the hub's own pages only.",
    },
    CHANNEL_TOKEN: {
        "type": "http",
        "scheme": "bearer",
        "description": "A channel token (ck_live_…), for agents.",
    },
}
