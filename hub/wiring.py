"""Builds the parts of a hub process, and chooses those that differ with and without PostgreSQL and Redis."""

import time
from functools import partial
from importlib import import_module
from typing import Any

from django.conf import settings

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.follow_ups import FollowUpTasks
from a2a_bridge.service.operations import Operations
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.services import Services
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.journal import JournalTaskStore
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import TaskStore
from a2a_bridge.service.tasks.store_by_id import StoresById
from a2a_bridge.surface.asgi import Access, Bridge
from a2a_bridge.surface.cards import find_extended_card
from a2a_bridge.surface.http_json import HttpJsonBinding
from a2a_bridge.surface.my_questions import QuestionList
from a2a_bridge.wire.errors import too_many_streams
from accounts.open_requests import OpenRequests, UnsignedSockets
from agents.core.ask_starter import AskStarter
from agents.core.dispatch import Dispatcher
from agents.core.live_views import LiveViews
from agents.core.ports import AskLimits, Link
from agents.core.post import LocalPost, Post
from agents.core.waiting import WaitingTurns
from agents.links.channel.consumer import AgentSocket
from agents.links.channel.events import HookEvents
from agents.links.channel.requests import ReplyNotes, Requests
from agents.links.remote.link import RemoteLink
from agents.links.sockets import SocketLink
from agents.models import Agent
from agents.models.choices import CHANNEL_LINK
from agents.models.remote import REMOTE_LINK
from agents.transcript.storage import StorageMeter
from agnt.endpoint.http import AgntEndpoint, StatusReports
from agnt.service.asks.asker import VenueAsker
from agnt.service.asks.breakers import StoredBreakers
from agnt.service.cancellations import Canceller
from agnt.service.intake.intake import Intake
from agnt.service.intake.runner import EnvelopeRunner
from gateway.service.client import Gateway
from gateway.service.health import HealthReport
from gateway.service.protocol_steps import StepRunner
from gateway.service.seat import GATEWAY_LINK
from gateway.surface.agent_protocol import AgentProtocol
from gateway.surface.fipa import FipaEndpoint
from gateway.surface.health import TeamHealth
from gateway.surface.http import GatewayHttp
from gateway.surface.sign_in import too_many_sockets
from gateway.surface.socket import GatewaySocket
from hub import limits as hub_limits
from hub.caller_rate import CallerRate
from hub.job_thread import make_sender_thread
from hub.monitoring.counts import Counts
from hub.monitoring.ledger import MeasuredLedger, MeasuredLink, Spans
from hub.services import HubServices, MessageSender
from kit import trace
from kit.concurrency import CARD_LOOKUPS, DOWNLOADS, ConcurrencyLimit
from kit.disk_reserve import DiskReserve
from kit.ids import unguessable
from mcp_server.service.elicitation import Elicitations
from mcp_server.service.open_calls import OpenCalls
from mcp_server.surface.endpoint import HubAddresses, McpEndpoint
from openai_api.surface.endpoint import ModelEndpoint
from openai_api.surface.team_agents import TeamModels
from operators.service.prompts import PromptService
from operators.surface.rest import Operators
from operators.surface.socket import OperatorSocket, OperatorSockets

CARD_LOOKUPS_OF_PROCESS = 32
RESERVE_BYTES = 8_388_608


def build_services() -> HubServices:
    """Put the parts together; nothing runs yet."""
    process_id = unguessable()
    message_sender = MessageSender()
    counts = Counts()
    spans = _spans()
    reserve = DiskReserve(settings.DATA_DIR / "reserve", RESERVE_BYTES) if settings.IS_EMBEDDED else None
    ledger = MeasuredLedger(
        home=process_id, carry=message_sender.queue_messages, counts=counts, spans=spans, reserve=reserve
    )
    waiting = WaitingTurns()
    limits = _limits()
    post = _post()
    link = SocketLink(process_id=process_id, post=post, waiting=waiting, release=ledger.release_turn)
    links: dict[str, Link] = {  # by `Session.link`
        CHANNEL_LINK: link,
        REMOTE_LINK: RemoteLink(waiting=waiting, release=ledger.release_turn, clock=time.monotonic),
    }
    if settings.GATEWAY:
        links[GATEWAY_LINK] = link
    if spans is not None:
        links = {name: MeasuredLink(one, spans) for name, one in links.items()}
    live = LiveViews(process_id=process_id, post=post)
    dispatcher = Dispatcher(
        links=links,
        ledger=ledger,
        waiting=waiting,
        limits=limits,
        live=live,
        clock=time.monotonic,
    )
    notes = ReplyNotes()
    asking = AskStarter(dispatcher=dispatcher, ledger=ledger, notifier=notes)
    requests = Requests(asking, notes)
    meter = StorageMeter(settings.STORAGE_PER_OWNER_MB, time.monotonic)
    hook_events = HookEvents(ledger=ledger, link=link, meter=meter)
    tasks = _tasks()
    feeds = Feeds()
    reader = TaskReader(tasks, feeds, reply_wait_s=settings.REPLY_WAIT_S)
    push_thread = make_sender_thread("pushes", "a2a.push_due")
    pushes = Pushes(feeds, reader, post, push_thread.wake)
    exchanges = Exchanges(
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
    callers = OpenRequests()
    streams = ConcurrencyLimit("streams", per_account=hub_limits.STREAMS.most, refuse=too_many_streams)
    runner = CallRunner(Operations(services), ledger, streams, callers, settings.STREAM_MAX_AGE_S)
    access = Access(settings.PUBLIC_URL)
    gateway = Gateway.build(
        process_id=process_id,
        link=link,
        dispatcher=dispatcher,
        post=post,
        is_alone=settings.IS_EMBEDDED,
        health=HealthReport(
            settings.PUBLIC_URL,
            str(settings.SPECTACULAR_SETTINGS["VERSION"]),
            None if settings.IS_EMBEDDED else post.is_reachable,
        ),
    )
    gateway_http = GatewayHttp(ledger, callers, settings.PUBLIC_URL, settings.APP_ORIGINS)
    team_agents = TeamModels(gateway_http, gateway, streams, settings.REPLY_WAIT_S, settings.STREAM_MAX_AGE_S)
    venue_asker = VenueAsker(dispatcher, StoredBreakers(counts.agnt))
    agnt = _agnt(callers, venue_asker, counts)
    gateway_clients = ConcurrencyLimit("sockets", per_account=hub_limits.STREAMS.most, refuse=too_many_sockets)
    operator_sockets, unsigned = OperatorSockets(hub_limits.STREAMS.most), UnsignedSockets()
    prompt_service = PromptService(asking=asking, reply_wait_s=settings.REPLY_WAIT_S)
    hub_services = HubServices(
        process_id=process_id,
        ledger=ledger,
        post=post,
        message_sender=message_sender,
        link=link,
        links=links,
        live=live,
        dispatcher=dispatcher,
        limits=limits,
        tasks=tasks,
        exchanges=exchanges,
        callers=callers,
        bridge=Bridge(access, runner),
        http_json=HttpJsonBinding(access, runner),
        mcp=McpEndpoint(
            runner,
            agnt.runner if settings.AGNT else None,
            Elicitations(process_id, post, callers),
            OpenCalls(process_id, post),
            HubAddresses(settings.PUBLIC_URL, settings.ALLOWED_HOSTS, settings.APP_ORIGINS),
            str(settings.SPECTACULAR_SETTINGS["VERSION"]),
        ),
        models=ModelEndpoint(runner, settings.PUBLIC_URL, ask_team=team_agents.ask if settings.GATEWAY else None),
        team_agents=team_agents,
        questions=QuestionList(reader, ledger, settings.PUBLIC_URL, settings.APP_ORIGINS, _preview),
        asking=asking,
        requests=requests,
        meter=meter,
        hook_events=hook_events,
        operators=Operators(prompt_service, ledger, callers, settings.PUBLIC_URL, settings.APP_ORIGINS),
        operator_sockets=operator_sockets,
        agent_socket=partial(
            AgentSocket,
            link=link,
            ledger=ledger,
            requests=requests,
            follow_ups=FollowUpTasks(tasks, pushes),
            meter=meter,
            unsigned=unsigned,
            process_id=process_id,
            clock=time.monotonic,
        ),
        gateway_socket=partial(
            GatewaySocket,
            gateway=gateway,
            ledger=ledger,
            clients=gateway_clients,
            callers=callers,
            unsigned=unsigned,
            process_id=process_id,
            clock=time.monotonic,
        ),
        operator_socket=partial(
            OperatorSocket,
            prompt_service=prompt_service,
            live=live,
            ledger=ledger,
            operator_sockets=operator_sockets,
            meter=meter,
            process_id=process_id,
            public_url=settings.PUBLIC_URL,
        ),
        gateway=gateway,
        agent_protocol=AgentProtocol(gateway_http, StepRunner(gateway, settings.REPLY_WAIT_S)),
        fipa=FipaEndpoint(gateway_http, gateway),
        gateway_clients=gateway_clients,
        gateway_health=TeamHealth(ledger, gateway.health),
        agnt=agnt,
        venue_asker=venue_asker,
        canceller=Canceller(venue_asker.ask),
        pushes=pushes,
        pusher=push_thread,
        streams=streams,
        counts=counts,
        spans=spans,
    )
    # Last: the ledger sends through the message sender, which delivers to the parts built above.
    message_sender.address(process_id, hub_services.take, post)
    return hub_services


def _agnt(callers: OpenRequests, venue_asker: VenueAsker, counts: Counts) -> AgntEndpoint:
    runner = EnvelopeRunner(Intake(), venue_asker.ask, counts.agnt, callers)
    return AgntEndpoint(runner, StatusReports(), is_https=settings.IS_HTTPS)


def _spans() -> Spans | None:
    if not settings.OTEL_ENDPOINT:
        return None
    telemetry = import_module("hub.monitoring.telemetry")  # imported only where it is set up: it is large
    trace.sample_new(settings.OTEL_SHARE)
    spans: Spans = telemetry.TurnSpans(settings.SPECTACULAR_SETTINGS["VERSION"])
    return spans


def _preview(text: str, max_chars: int) -> str:
    """The beginning of a text without Markdown. The first call loads the parser."""
    line: str = import_module("kit.markdown").to_line(text, max_chars)
    return line


def _distributed() -> Any:
    """The module that an embedded hub never loads."""
    return import_module("hub.distributed")


def _post() -> Post:
    if settings.IS_EMBEDDED:
        return LocalPost()
    post: Post = _distributed().RedisPost(settings.REDIS_URL)
    return post


def _tasks() -> TaskStore:
    """The hub's own store, and the two kinds that agents may choose."""
    journal = JournalTaskStore(kept_days=settings.TASKS_KEPT_DAYS)
    memory: TaskStore
    if settings.IS_EMBEDDED:
        memory = MemoryTaskStore(time.monotonic, max_bytes=settings.TASKS_MEMORY_MB * 1_048_576)
    else:
        memory = _distributed().RedisTaskStore(settings.REDIS_URL)
    own = journal if settings.TASK_STORE == "journal" else memory
    return StoresById(own, {Agent.TaskStore.MEMORY: memory, Agent.TaskStore.JOURNAL: journal})


def concurrency_limits() -> dict[str, ConcurrencyLimit]:
    """How many long requests run at once, by kind."""
    numbers = {
        DOWNLOADS: (hub_limits.DOWNLOADS.most, settings.DOWNLOADS_PER_PROCESS),
        CARD_LOOKUPS: (hub_limits.CARD_LOOKUPS.most, CARD_LOOKUPS_OF_PROCESS),
    }
    return {
        kind: ConcurrencyLimit(kind, per_account=each, per_process=most) for kind, (each, most) in numbers.items()
    }


def _limits() -> AskLimits:
    if settings.IS_EMBEDDED or not settings.CALLER_RATE_PER_MINUTE:
        return CallerRate(settings.CALLER_RATE_PER_MINUTE)
    limits: AskLimits = _distributed().make_caller_rate(settings.CALLER_RATE_PER_MINUTE, settings.REDIS_URL)
    return limits
