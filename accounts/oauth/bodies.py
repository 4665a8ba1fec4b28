"""What programs send on their way to a credential, for the description; the views read it field by field."""

from msgspec import Struct


class CodeExchange(Struct):
    """A code, and the verifier of the challenge it was asked for with."""

    code: str
    code_verifier: str


class DeviceStart(Struct):
    """Which app, on which machine."""

    app_name: str
    machine_id: str = ""


class DevicePoll(Struct):
    """The device's own code."""

    device_code: str
