"""The kinds of abuse: each is a function of a hub and an attacker, and goes on until it is cancelled."""

from collections.abc import Mapping

from lab.attacks.attacker import Kind
from lab.attacks.kinds import amounts, costly, sending, sockets, unread

KINDS: Mapping[str, Kind] = {
    kind.__name__: kind
    for kind in (
        unread.exports_unread,
        unread.downloads_unread,
        unread.a2a_streams_unread,
        unread.mcp_streams_unread,
        unread.chat_streams_unread,
        unread.gateway_unread,
        unread.cli_unread,
        sockets.idle_sockets_without_a_token,
        sockets.idle_sockets_with_a_token,
        sockets.gateway_broadcasts,
        sending.trickled_uploads,
        sending.trickled_bodies,
        sending.deep_json,
        sending.wide_json,
        sending.pictures,
        costly.searches,
        costly.regular_expressions,
        costly.reply_formats,
        costly.markdown,
        costly.pages,
        costly.slow_cards,
        costly.slow_webhooks,
        amounts.tasks,
        amounts.tokens,
        amounts.push_configs,
        amounts.subscriptions,
        amounts.sessions,
        amounts.full_account,
    )
}
