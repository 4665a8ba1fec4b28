"""`/supervisor`, the socket of desktops: this hub manages none, and says so before it closes."""

import msgspec

from kit.asgi import Receive, Send
from kit.describe import CALLER, Socket
from kit.sockets import POLICY_VIOLATION


class Error(msgspec.Struct, frozen=True, tag_field="t", tag="error"):
    """The only thing said here: `code` is `not_implemented`. Then the socket is closed with 1008."""

    code: str
    message: str


SOCKET = Socket(
    path="/supervisor",
    summary="A desktop's supervisor is told that none are managed here.",
    security=CALLER,
    from_client=[],
    to_client=[Error],
)
NO_DESKTOPS = msgspec.json.encode(Error("not_implemented", "this hub does not manage desktops")).decode()


async def refuse(receive: Receive, send: Send) -> None:
    """Accept, so that the client reads why, and close."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": NO_DESKTOPS})
    await send({"type": "websocket.close", "code": POLICY_VIOLATION})
