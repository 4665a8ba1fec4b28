"""The parts of one hub process, and what each message gets of them."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.tasks.store import TaskStore
from a2a_bridge.surface.asgi import Bridge
from a2a_bridge.surface.http_json import HttpJsonBinding
from a2a_bridge.surface.my_questions import QuestionList
from accounts.open_requests import OpenRequests
from agents.core.ask_starter import AskStarter
from agents.core.dispatch import Dispatcher
from agents.core.ledger import Ledger
from agents.core.live_views import LiveViews
from agents.core.ports import AskLimits, Link
from agents.core.post import Cancel, Handler, JoinTurn, LeaveTurn, Message, Post, WatchForPushes
from agents.links.channel.consumer import AgentSocket
from agents.links.channel.events import HookEvents
from agents.links.channel.requests import Requests
from agents.links.sockets import SocketLink
from agents.transcript.announcements import AddressedMessage, LiveFrame, RecheckAccess, SurfaceMessage
from agents.transcript.storage import StorageMeter
from agnt.endpoint.http import AgntEndpoint
from agnt.service.asks.asker import VenueAsker
from agnt.service.cancellations import Canceller
from gateway.service.client import Gateway
from gateway.surface.agent_protocol import AgentProtocol
from gateway.surface.fipa import FipaEndpoint
from gateway.surface.health import TeamHealth
from gateway.surface.socket import GatewaySocket
from hub.job_thread import JobThread
from hub.monitoring.counts import Counts
from hub.monitoring.ledger import Spans
from hub.monitoring.metrics import Gauges
from kit.concurrency import ConcurrencyLimit
from mcp_server.service.elicitation import SURFACE as MCP_SURFACE
from mcp_server.service.open_calls import SURFACE as MCP_CANCEL
from mcp_server.surface.endpoint import McpEndpoint
from openai_api.surface.endpoint import ModelEndpoint
from openai_api.surface.team_agents import TeamModels
from operators.surface.rest import Operators
from operators.surface.socket import OperatorSocket, OperatorSockets

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000


class MessageSender:
    """One queue and one task; messages beyond its size are dropped, which loses no rows."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[AddressedMessage] = asyncio.Queue(MAX_WAITING)

    def address(self, process_id: str, here: Handler, post: Post) -> None:
        """Set this process's handler and the post to other processes."""
        self._me, self._here, self._post = process_id, here, post

    def queue_messages(self, addressed: Sequence[AddressedMessage]) -> None:
        """Queue messages from any thread; does nothing before the process has started or after it has ended."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._put, addressed)

    async def run(self) -> None:
        """Carry until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            process_id, message = await self._queue.get()
            try:
                if process_id == self._me:
                    await self._here(message)
                else:
                    await self._post.send(process_id, message)
            except Exception:
                logger.exception("courier.failed", extra={"kind": type(message).__name__})
            await asyncio.sleep(0)  # sockets send what they were given before they are given more

    def _put(self, addressed: Sequence[AddressedMessage]) -> None:
        for one in addressed:
            if self._queue.full():
                logger.warning("courier.full")
                return
            self._queue.put_nowait(one)


@dataclass(frozen=True, slots=True)
class HubServices:
    """The parts of one hub process. `agent_socket` and the like make the consumer of a new socket."""

    process_id: str
    ledger: Ledger
    post: Post
    message_sender: MessageSender
    link: SocketLink
    links: Mapping[str, Link]
    live: LiveViews
    dispatcher: Dispatcher
    asking: AskStarter
    requests: Requests
    meter: StorageMeter
    hook_events: HookEvents
    limits: AskLimits
    tasks: TaskStore
    exchanges: Exchanges
    callers: OpenRequests
    bridge: Bridge
    http_json: HttpJsonBinding
    mcp: McpEndpoint
    models: ModelEndpoint
    team_agents: TeamModels
    questions: QuestionList
    operators: Operators
    operator_sockets: OperatorSockets
    agent_socket: Callable[[], AgentSocket]
    gateway_socket: Callable[[], GatewaySocket]
    operator_socket: Callable[[], OperatorSocket]
    gateway: Gateway
    gateway_clients: ConcurrencyLimit
    agent_protocol: AgentProtocol
    fipa: FipaEndpoint
    gateway_health: TeamHealth
    agnt: AgntEndpoint
    venue_asker: VenueAsker
    canceller: Canceller
    pushes: Pushes
    pusher: JobThread
    streams: ConcurrencyLimit
    counts: Counts
    spans: Spans | None

    async def take(self, message: Message) -> None:
        """A message from another process, or from a thread of this one."""
        if isinstance(message, LiveFrame | RecheckAccess):
            self.live.take(message)
        elif isinstance(message, Cancel):
            self.dispatcher.cancel(message.chat_id)
        elif isinstance(message, SurfaceMessage):
            self._take_surface_message(message)
        elif isinstance(message, WatchForPushes):
            self.pushes.attend(message.task_id)
        elif isinstance(message, LeaveTurn):
            self.exchanges.take_leave(message)
        # In a task: it waits for a turn to begin, and the post hands over one message at a time.
        elif isinstance(message, JoinTurn):
            self.link.start(self.exchanges.join(message), "join")
        else:
            await self.link.take(message)

    def _take_surface_message(self, message: SurfaceMessage) -> None:
        if message.surface == MCP_SURFACE:
            self.mcp.elicitations.take(message.body)
        elif message.surface == MCP_CANCEL:
            self.mcp.open_calls.take(message.body)
        else:
            self.gateway.take(message)

    def gauges(self) -> Gauges:
        """The present load of this process, for `/metrics`."""
        return {
            "process_turns": (
                "Open turns of this process, and asks that wait here.",
                lambda: self.dispatcher.open_turns,
            ),
            "queued_asks": ("Asks that wait here for a free agent.", lambda: self.dispatcher.queued),
            "agent_sockets": ("Agents connected here.", lambda: len(self.link.sessions)),
            "operator_sockets": ("Operators connected here.", lambda: self.operator_sockets.sockets),
            "gateway_clients": (
                "Clients of the gateway without a seat, connected here.",
                lambda: self.gateway_clients.total,
            ),
            "gateway_subscriptions": (
                "Subscriptions to channels of the gateway here, its own included.",
                lambda: self.gateway.channels.total,
            ),
            "streams": ("Event streams open here.", lambda: self.streams.total),
            "agnt_queue": ("AGNT envelopes that wait to be decided.", lambda: self.agnt.runner.waiting),
            "ledger_queue": ("Pieces of work that wait for the ledger.", lambda: self.ledger.waiting),
        }
