"""Tells agents what their operators asked elsewhere and what came back."""

from msgspec import Struct

from agents.announcing import tell_agent
from agents.links.channel.frames import encode, now
from kit.async_db import db_call


class RouteReply(Struct, frozen=True, rename="camel", tag_field="type", tag="route_reply"):
    """What a peer answered the operator of this session; not to be replied to."""

    route_id: str
    from_name: str
    text: str
    ts: str
    origin: str


class Notices:
    """See `agents.ports.Notifier`: by the announcements, to wherever the agent's socket is."""

    async def route_reply(self, session_id: int, *, chat_id: str, from_name: str, text: str) -> None:
        """Show the answer to the session's agent, if it is connected; it may be lost."""
        reply = RouteReply(route_id=chat_id, from_name=from_name, text=text, ts=now(), origin="operator")
        await db_call(tell_agent)(session_id, encode(reply))
