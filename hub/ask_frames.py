"""The frames of the gateway among the steps of an ask: the bridge shows them, the gateway has them."""

from collections.abc import Iterator
from datetime import timedelta

from a2a_bridge.service.ask_access import ViewedAsk, owner_id_of
from a2a_bridge.service.ask_spans import OVERLAP, Span
from agents.models.choices import Surface
from gateway.service.frame_log import SERVED, find_frames
from kit.clock import db_now

MAX_FRAMES = 100
MILLISECOND = timedelta(milliseconds=1)


def find_gateway_frames(viewed: ViewedAsk) -> Iterator[Span]:
    """The frames of the ask's session of the gateway while the ask ran, of the teams whose audit the viewer reads.

    A record of a frame names its session, not the ask; it has no content.
    """
    turn = viewed.turn
    if turn.surface != Surface.GATEWAY or not turn.context_id:
        return
    begin, end = turn.asked_at - OVERLAP, (turn.settled_at or db_now()) + OVERLAP
    teams = {turn.caller_id if viewed.is_caller else None, owner_id_of(turn) if viewed.is_owner else None}
    for team_id in sorted(team for team in teams if team is not None):
        for one in find_frames(team_id, turn.context_id, begin, end, MAX_FRAMES):
            refused = f", error {one.error_code}" if one.error_code else ""
            yield Span(
                kind="frame",
                name=f"Frame {one.type} of {one.source}",
                began_at=one.at,
                ended_at=one.at + one.latency_ms * MILLISECOND,
                detail=f"{one.outcome} to {one.destination}, {one.bytes} bytes{refused}",
                is_fault=one.outcome != SERVED,
            )
