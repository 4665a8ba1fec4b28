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
# An expression can match only a text that has one of its words in it, in whatever case. Most texts have none, and
# to look for the words takes a tenth of the time.
_RULES = (
    (("cw_", "_live_", "gh", "whsec_"), _TOKEN, r"\1…"),
    (("eyj",), _JWT, r"\1…"),
    (("bearer",), _BEARER, r"\1…"),
    (("token=",), _TOKEN_IN_QUERY, r"\1…"),
    (("/join/",), _INVITATION, r"\1…"),
    (("://",), _PASSWORD_IN_URL, r"\1…\2"),
)


def without_secrets(text: str) -> str:
    """The text without secrets. The hub's own code logs none; a library may."""
    folded = text.casefold()
    for words, secret, shown in _RULES:
        for word in words:
            if word in folded:
                text = secret.sub(shown, text)
                break
    return text


def show_foreign(text: str, most: int) -> str:
    """The beginning of a text from another program, without secrets and without characters that a database
    refuses.

    Signatures, and values that the text names as a password, a secret, a token or a key, are left out too.
    """
    beginning = text[: 8 * most].encode(errors="replace").decode().replace("\0", "\ufffd")
    return without_secrets(_NAMED.sub(r"\1…", _DIGEST.sub(r"\1…", beginning)))[:most]
