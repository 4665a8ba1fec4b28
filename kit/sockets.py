"""A Channels consumer without the thread hop per frame (docs/adr/0004)."""

from collections.abc import Callable
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from kit.account_pace import FRAME, TOGETHER_S, AccountPace
from kit.asgi import RETRY_SOON, Receive, Scope, Send, error_body, slow_down

SendNow = Callable[[bytes], bool]
ReceiveNow = Callable[[bytes], bool]
SetHeartbeat = Callable[[float], None]

# Close codes. The last two ask the client to connect again.
POLICY_VIOLATION = 1008
SERVICE_RESTART = 1012
TRY_AGAIN_LATER = 1013
RETRIED = (429, 503)  # the statuses of refused upgrades that a client may repeat soon


async def refuse_upgrade(receive: Receive, send: Send, status: int, code: str, message: str) -> None:
    """Answer the upgrade itself with an HTTP error: the client sees a failed connection and backs off."""
    await receive()
    await send_refusal(send, status, code, message)


async def send_refusal(send: Send, status: int, code: str, message: str) -> None:
    """Refuse an upgrade that was received already; see `refuse_upgrade`."""
    await slow_down(status)
    headers = [(b"content-type", b"application/json"), *([RETRY_SOON] if status in RETRIED else [])]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": error_body(code, message)})


def find_set_heartbeat(send: Send) -> SetHeartbeat | None:
    """Find the function that sets the interval of the server's pings, in seconds.

    Returns None where `send` is not the server's own, or the server sends no pings.
    """
    found: SetHeartbeat | None = getattr(getattr(send, "__self__", None), "set_heartbeat", None)
    return found


def _size(text: str | None, data: bytes | None) -> int:
    if text is None:
        return len(data or b"")
    return len(text) if text.isascii() else len(text.encode())


class SocketConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Handles one message at a time on the event loop, straight from the server.

    Channels' own loop makes a task per message and hops to a thread to close stale database connections;
    `kit.async_db.db_call` closes them where the database is really used. The consumer has no channel layer: turns
    never travel by one.

    `send_now`: sends a text without a coroutine; returns False if the text was not sent, because other texts wait
    or the client reads slowly. None where `send` is not the server's own: a wrapper may change what is sent.

    `receive_now`: handles a text that the client sent, without a coroutine; the server calls it while the consumer
    waits for a message. Returns False, with nothing done, if `receive` has to be used, as for bytes that are no
    UTF-8. None: `receive` handles all messages.

    `pace`: of the account of the client, once it is known. `receive_now` counts what it handles.
    """

    send_now: SendNow | None = None
    receive_now: ReceiveNow | None = None
    pace = AccountPace(0)

    @property
    def has_left(self) -> bool:
        """True if the client has closed the connection, as far as the server knows."""
        transport = getattr(getattr(self.base_send, "__self__", None), "transport", None)
        return transport is not None and bool(transport.is_closing())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.base_send = send
        server: Any = getattr(send, "__self__", None)
        self.send_now = getattr(server, "send_now", None)
        if hasattr(server, "receive_now"):
            server.receive_now = self.receive_now
        self.channel_layer = None
        code = 1006
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                if message["type"] == "websocket.connect":
                    await self.connect()
                else:
                    text, data = message.get("text"), message.get("bytes")
                    await self.pace.keep(FRAME + _size(text, data), at_least_s=TOGETHER_S)
                    await self.receive(text, data)
            code = message.get("code") or 1005
        finally:
            if hasattr(server, "receive_now"):
                server.receive_now = None  # the consumer refers to the server, too
            # Also when the server cancels this task: `disconnect` deletes the row of the connection.
            await self.disconnect(code)
