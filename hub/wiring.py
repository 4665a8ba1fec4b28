"""Builds the services of a hub process, with or without PostgreSQL and Redis."""

import time
from functools import partial
from importlib import import_module
from typing import Any

from django.conf import settings

from a2a_bridge import settings as bridge_settings
from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.exchange_log import ExchangeLog
from a2a_bridge.service.follow_ups import FollowUpTasks
from a2a_bridge.service.operations import Operations
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.services import Services
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.journal import JournalTaskStore
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById, TaskStore
from a2a_bridge.surface.api import QuestionList
from a2a_bridge.surface.asgi import Bridge
from a2a_bridge.surface.cards import find_extended_card
from a2a_bridge.surface.http_json import HttpJsonBinding
from a2a_bridge.surface.sharing import ShareEndpoint
from a2a_bridge.wire.errors import too_many_streams
from accounts.open_requests import OpenRequests, UnsignedSockets
from agents.core.ask_starter import AskStarter
from agents.core.dispatch import Dispatcher
from agents.core.ledger import Ledger
from agents.core.ledger.disk_reserve import DiskReserve
from agents.core.live_views import LiveViews
from agents.core.ports import AskLimits, Link, Spans
from agents.core.post import CancelTurn, JoinTurn, LeaveTurn, LocalPost, Message, Post, WatchForPushes
from agents.core.rest_server import RestServer
from agents.core.waiting import WaitingTurns
from agents.links.channel.arrivals import Arrivals
from agents.links.channel.driving import register_agents
from agents.links.channel.events import HookEvents
from agents.links.channel.requests import ReplyNotes, Requests
from agents.links.channel.socket import AgentSocket
from agents.links.remote.link import RemoteLink
from agents.links.sockets import SocketLink
from agents.models import Agent
from agents.models.choices import CHANNEL_LINK
from agents.models.remote import REMOTE_LINK
from agents.transcript.announcements import LiveFrame, RecheckAccess, SurfaceMessage
from agents.transcript.storage import StorageMeter
from agnt.endpoint.http import AgntEndpoint, StatusReports
from agnt.service.asks.asker import VenueAsker
from agnt.service.asks.breakers import StoredBreakers
from agnt.service.cancellations import Canceller
from agnt.service.intake.intake import Intake
from agnt.service.intake.runner import EnvelopeRunner
from evaluations.service.asking import Examiner
from gateway.service.client import Gateway
from gateway.service.health import HealthReport
from gateway.service.protocol_tasks import StepRunner
from gateway.service.seat import GATEWAY_LINK, take_seats
from gateway.surface.agent_protocol import AgentProtocol
from gateway.surface.fipa import FipaEndpoint
from gateway.surface.health import TeamHealth
from gateway.surface.sign_in import too_many_sockets
from gateway.surface.socket import GatewaySocket
from hub import limits as hub_limits
from hub.agnt_exchanges import AgntExchanges
from hub.caller_rate import CallerRate
from hub.job_thread import MessageSender, make_sender_thread
from hub.monitoring.ledger import Counts, MeasuredLink
from hub.monitoring.metrics import Gauges
from hub.request_turns import RequestTurns
from kit import trace
from kit.account_pace import SEAT, AccountPaces
from kit.concurrency import CARD_LOOKUPS, DOWNLOADS, ConcurrencyLimit
from kit.ids import unguessable
from mcp_server.service.calls import SURFACE as MCP_CANCEL
from mcp_server.service.calls import OpenCalls
from mcp_server.service.elicitation import SURFACE as MCP_SURFACE
from mcp_server.service.elicitation import Elicitations
from mcp_server.surface.endpoint import HubAddresses, McpEndpoint
from openai_api.surface.endpoint import ModelEndpoint
from openai_api.surface.team_agents import TeamModels
from operators.service.prompts import PromptService
from operators.surface.api import Operators
from operators.surface.socket import OperatorSocket, OperatorSockets

CARD_LOOKUPS_OF_PROCESS = 32
RESERVE_BYTES = 8_388_608


class HubServices:
    """The services of one hub process, not started yet. `agent_socket` and its like make a socket's consumer."""

    def __init__(self) -> None:
        version = str(settings.SPECTACULAR_SETTINGS["VERSION"])
        self.process_id = process_id = unguessable()
        self.message_sender = message_sender = MessageSender()
        self.counts = counts = Counts()
        self.spans = spans = _spans()
        reserve = DiskReserve(settings.DATA_DIR / "reserve", RESERVE_BYTES) if settings.IS_EMBEDDED else None
        self.ledger = ledger = Ledger(
            home=process_id, carry=message_sender.queue_messages, counts=counts, spans=spans, reserve=reserve
        )
        self.waiting = waiting = WaitingTurns(ledger.release_turn)
        self.limits = limits = _limits()
        self.post = post = _post()
        self.link = link = SocketLink(process_id=process_id, post=post, waiting=waiting)
        links: dict[str, Link] = {  # by `Session.link`
            CHANNEL_LINK: link,
            REMOTE_LINK: RemoteLink(waiting=waiting, clock=time.monotonic),
        }
        if settings.GATEWAY:
            links[GATEWAY_LINK] = link
        if spans is not None:
            links = {name: MeasuredLink(one, spans) for name, one in links.items()}
        self.links = links
        self.live = live = LiveViews(process_id=process_id, post=post)
        self.dispatcher = dispatcher = Dispatcher(
            links=links,
            ledger=ledger,
            waiting=waiting,
            limits=limits,
            live=live,
            clock=time.monotonic,
        )
        notes = ReplyNotes()
        self.asking = asking = AskStarter(dispatcher=dispatcher, ledger=ledger, notifier=notes)
        self.requests = requests = Requests(asking, notes)
        self.meter = meter = StorageMeter(settings.STORAGE_PER_OWNER_MB, time.monotonic)
        self.hook_events = HookEvents(ledger=ledger, link=link, meter=meter)
        self.tasks = tasks = _tasks()
        feeds = Feeds()
        reader = TaskReader(tasks, feeds, reply_wait_s=settings.REPLY_WAIT_S)
        self.pusher = push_thread = make_sender_thread("pushes", "a2a.push_due")
        self.pushes = pushes = Pushes(feeds, reader, post, push_thread.wake)
        self.exchanges = exchanges = Exchanges(
            dispatcher=dispatcher,
            tasks=tasks,
            feeds=feeds,
            pushes=pushes,
            post=post,
            reply_wait_s=settings.REPLY_WAIT_S,
            process_id=process_id,
        )
        services = Services(
            exchanges=exchanges,
            reader=reader,
            tasks=tasks,
            feeds=feeds,
            pushes=pushes,
            dispatcher=dispatcher,
            post=post,
            extended_card=partial(
                find_extended_card, public_url=settings.PUBLIC_URL, reply_wait_s=settings.REPLY_WAIT_S
            ),
        )
        self.callers = callers = OpenRequests()
        self.streams = streams = ConcurrencyLimit(
            "streams", per_account=hub_limits.STREAMS.most, refuse=too_many_streams
        )
        self.exchange_log = exchange_log = ExchangeLog() if bridge_settings.EXCHANGES_KEPT_DAYS else None
        runner = CallRunner(
            Operations(services), ledger, streams, callers, settings.STREAM_MAX_AGE_S, exchange_log
        )
        paces = AccountPaces(settings.SOCKET_BYTES_PER_SECOND)
        self.gateway = gateway = Gateway.build(
            process_id=process_id,
            paces=paces,
            link=link,
            dispatcher=dispatcher,
            post=post,
            is_alone=settings.IS_EMBEDDED,
            health=HealthReport(
                settings.PUBLIC_URL,
                version,
                None if settings.IS_EMBEDDED else post.is_reachable,
            ),
        )
        self.turns = turns = RequestTurns(settings.ACCOUNT_SHARE_PERCENT)
        rest = RestServer(ledger, callers, settings.PUBLIC_URL, settings.APP_ORIGINS)
        self.team_agents = team_agents = TeamModels(
            rest, gateway, streams, settings.REPLY_WAIT_S, settings.STREAM_MAX_AGE_S, turns.call, exchange_log
        )
        self.venue_asker = venue_asker = VenueAsker(dispatcher, StoredBreakers(counts.agnt))
        envelopes = EnvelopeRunner(Intake(), venue_asker.ask, counts.agnt, callers)
        record = AgntExchanges(exchange_log) if exchange_log else None
        self.agnt = AgntEndpoint(envelopes, StatusReports(), record, is_https=settings.IS_HTTPS)
        self.gateway_clients = gateway_clients = ConcurrencyLimit(
            "sockets", per_account=hub_limits.STREAMS.most, refuse=too_many_sockets
        )
        self.operator_sockets = operator_sockets = OperatorSockets(hub_limits.STREAMS.most)
        unsigned = UnsignedSockets()
        prompt_service = PromptService(asking=asking, reply_wait_s=settings.REPLY_WAIT_S)
        self.bridge = Bridge(runner, settings.PUBLIC_URL)
        self.http_json = HttpJsonBinding(runner, settings.PUBLIC_URL)
        self.mcp = McpEndpoint(
            runner,
            envelopes if settings.AGNT else None,
            Elicitations(process_id, post, callers),
            OpenCalls(process_id, post),
            HubAddresses(settings.PUBLIC_URL, settings.ALLOWED_HOSTS, settings.APP_ORIGINS),
            version,
        )
        self.models = ModelEndpoint(
            runner, settings.PUBLIC_URL, turns.call, ask_team=team_agents.ask if settings.GATEWAY else None
        )
        self.questions = QuestionList(reader, rest, _preview, turns.call)
        self.sharing = ShareEndpoint(reader, rest)
        self.operators = Operators(prompt_service, rest)
        self.agent_socket = partial(
            AgentSocket,
            link=link,
            ledger=ledger,
            requests=requests,
            follow_ups=FollowUpTasks(tasks, pushes),
            meter=meter,
            unsigned=unsigned,
            arrivals=Arrivals(link, paces, partial(register_agents, process_id=process_id)),
            process_id=process_id,
            clock=time.monotonic,
        )
        self.gateway_socket = partial(
            GatewaySocket,
            gateway=gateway,
            ledger=ledger,
            clients=gateway_clients,
            callers=callers,
            unsigned=unsigned,
            arrivals=Arrivals(link, paces, partial(take_seats, process_id=process_id), SEAT),
            clock=time.monotonic,
        )
        self.operator_socket = partial(
            OperatorSocket,
            prompt_service=prompt_service,
            live=live,
            ledger=ledger,
            operator_sockets=operator_sockets,
            meter=meter,
            paces=paces,
            process_id=process_id,
            public_url=settings.PUBLIC_URL,
        )
        self.agent_protocol = AgentProtocol(rest, StepRunner(gateway, settings.REPLY_WAIT_S))
        self.fipa = FipaEndpoint(rest, gateway)
        self.gateway_health = TeamHealth(ledger, gateway.health)
        self.canceller = Canceller(venue_asker.ask)
        self.examiner = Examiner(asking)
        # Last: the message sender delivers to the services built above.
        message_sender.address(process_id, self.take, post)

    async def take(self, message: Message) -> None:
        """A message from another process, or from a thread of this one."""
        if isinstance(message, LiveFrame | RecheckAccess):
            self.live.take(message)
        elif isinstance(message, CancelTurn):
            self.dispatcher.cancel(message.chat_id)
        elif isinstance(message, SurfaceMessage):
            self._take_surface_message(message)
        elif isinstance(message, WatchForPushes):
            self.pushes.queue_for_address(message.task_id)
        elif isinstance(message, LeaveTurn):
            self.exchanges.take_leave(message)
        # In a task: joining waits for a turn to begin, and the post delivers one message at a time.
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


def _spans() -> Spans | None:
    if not settings.OTEL_ENDPOINT:
        return None
    # Imported only with an endpoint, because the SDK is large.
    telemetry = import_module("hub.monitoring.telemetry")
    trace.sample_new(settings.OTEL_SHARE)
    spans: Spans = telemetry.TurnSpans(settings.SPECTACULAR_SETTINGS["VERSION"])
    return spans


def _preview(text: str, max_chars: int) -> str:
    """The beginning of a text without Markdown. The first call loads the parser."""
    line: str = import_module("kit.markdown").to_line(text, max_chars)
    return line


def _distributed() -> Any:
    """The module of hubs with several processes, which an embedded hub never imports."""
    return import_module("hub.distributed")


def _post() -> Post:
    if settings.IS_EMBEDDED:
        return LocalPost()
    post: Post = _distributed().RedisPost(settings.REDIS_URL)
    return post


def _tasks() -> StoresById:
    """The hub's default store of tasks, and the two stores that agents may choose."""
    journal = JournalTaskStore(kept_days=settings.TASKS_KEPT_DAYS)
    memory: TaskStore
    if settings.IS_EMBEDDED:
        memory = MemoryTaskStore(time.monotonic, max_bytes=settings.TASKS_MEMORY_MB * 1_048_576)
    else:
        memory = _distributed().RedisTaskStore(settings.REDIS_URL)
    own = journal if settings.TASK_STORE == "journal" else memory
    return StoresById(own, {Agent.TaskStore.MEMORY: memory, Agent.TaskStore.JOURNAL: journal})


def concurrency_limits() -> dict[str, ConcurrencyLimit]:
    """The limits of long requests that run at once, by kind."""
    most = {
        DOWNLOADS: (hub_limits.DOWNLOADS.most, settings.DOWNLOADS_PER_PROCESS),
        CARD_LOOKUPS: (hub_limits.CARD_LOOKUPS.most, CARD_LOOKUPS_OF_PROCESS),
    }
    return {kind: ConcurrencyLimit(kind, per_account=own, per_process=all_) for kind, (own, all_) in most.items()}


def _limits() -> AskLimits:
    if settings.IS_EMBEDDED or not settings.CALLER_RATE_PER_MINUTE:
        return CallerRate(settings.CALLER_RATE_PER_MINUTE)
    limits: AskLimits = _distributed().make_caller_rate(settings.CALLER_RATE_PER_MINUTE, settings.REDIS_URL)
    return limits
