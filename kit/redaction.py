"""Removes secrets from texts for logs and pages."""

import re

_TOKEN = re.compile(r"(cw_sess_|cw_app_|cw_ref_|cw_code_|cw_dev_|ck_live_|agnt_live_|gh[a-z]_|whsec_)\w{4,}")
_JWT = re.compile(r"(eyJ)[\w-]{4,}\.[\w-]{4,}\.[\w-]{4,}")
_BEARER = re.compile(r"(bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE)
_INVITATION = re.compile(r"(/join/)[^\s/'\"]{4,}")
_TOKEN_IN_QUERY = re.compile(r"([?&]token=)[^\s&'\"]+")
_PASSWORD_IN_URL = re.compile(r"(\w://[^\s:/@]*:)[^\s@/]+(@)")
_DIGEST = re.compile(r"\b([0-9a-fA-F]{4})[0-9a-fA-F]{60,}\b")
_NAMED = re.compile(
    r"((?:password|passwd|secret|token|api_?key|authorization|_sig)\w*\\?[\"']?\s*[:=]\s*\\?[\"']?)[^\s\"'\\,}&]+",
    re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The text without secrets. The hub's own code logs none; a library may."""
    text = _BEARER.sub(r"\1…", _JWT.sub(r"\1…", _TOKEN.sub(r"\1…", text)))
    text = _TOKEN_IN_QUERY.sub(r"\1…", text)
    return _PASSWORD_IN_URL.sub(r"\1…\2", _INVITATION.sub(r"\1…", text))


def show_foreign(text: str, most: int) -> str:
    """The beginning of a text from another program, without secrets and without characters that a database
    refuses.

    Signatures, and values that the text names as a password, a secret, a token or a key, are left out too.
    """
    beginning = text[: 8 * most].encode(errors="replace").decode().replace("\0", "\ufffd")
    return without_secrets(_NAMED.sub(r"\1…", _DIGEST.sub(r"\1…", beginning)))[:most]
