"""What programs send on their way to a credential, for the description; the views read it field by field."""

from typing import Annotated

from msgspec import Meta, Struct

from accounts.oauth.asked import CHALLENGE, MACHINE_ID, MAX_APP_NAME_CHARS, STATE, VERIFIER

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


class DeviceStart(Struct):
    """Which app, on which machine."""

    app_name: Annotated[str, Meta(min_length=1, max_length=MAX_APP_NAME_CHARS)]
    machine_id: Annotated[str, Meta(pattern=MACHINE_ID_PATTERN)] = ""


class DevicePoll(Struct):
    """The device's own code."""

    device_code: str
