"""SendMessage and SendStreamingMessage: start a turn, join one, repeat an answer, or follow up on a task."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from a2a_bridge.service.approvals import AsksApproval, answer
from a2a_bridge.service.calls import (
    AwaitedAnswer,
    Call,
    CompleteAnswer,
    Incoming,
    Outcome,
    StreamedAnswer,
    digest_of,
)
from a2a_bridge.service.inputs import take_inputs
from a2a_bridge.service.pushes import IN_SEND
from a2a_bridge.service.repeats import (
    JoinedTask,
    KeyClaim,
    RepeatedSend,
    check,
    is_being_answered,
    join,
    release_key,
    take,
)
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.services import Services, again, find
from a2a_bridge.service.streams import TaskStreams
from a2a_bridge.service.tasks.store import TaskQuery, new_task_id
from a2a_bridge.wire.dialects.dialect import Operation, get_renderer
from a2a_bridge.wire.errors import not_continuable, other_context
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import INTERRUPTED, Message, Role, State, Task
from agents.core.errors import AlreadyAsked, Denied
from agents.core.post import JoinTurn
from agents.core.types import LookUpResult
from agents.transcript.pieces import Part
from kit.ids import unguessable
from kit.jsonrpc import RpcError

GO_ON_TRIES = 2  # another message may be first
NOTHING_TO_ASK = "The request contained no supported text or data parts."


Run = TaskRun | JoinedTask | RepeatedSend


class HasFollowUps(Exception):
    """The agent has follow-ups, perhaps in the context of this message for its task to show.

    The agent was not asked.
    """


async def take_send(services: Services, call: Call, send: Send) -> Outcome:
    """Ask, or find what was asked already."""
    if send.resumes and send.context_id and not send.task_id:
        send = replace(send, task_id=await _waiting_in(services, call, send.context_id))
    streaming = TaskStreams(call.dialect, send, services.reader)
    if call.seen and call.operation is Operation.STREAM:
        return await again(services, call, streaming)
    send = await take_inputs(services, call, send)
    try:
        if send.approves:
            await _check_approval(services, call, send.approves)
        if not send.question:
            return await _nothing(services, call, send, streaming)
        run = await _keyed(services, call, send) if call.key else await _start(services, call, send)
    except AlreadyAsked as same:
        return await _joined(services, call, send, same)
    except AsksApproval as asks:
        return await _approved(services, call, replace(send, takes_direct=False), asks.task)
    return await _outcome(services, call, send, run)


async def _waiting_in(services: Services, call: Call, context_id: str) -> str:
    """The id of the task in a context that most recently began to wait for its caller; empty if no task waits."""
    caller_id, handle = call.caller.identity.user_id, call.caller.agent.handle
    waiting: list[Task] = []
    for state in INTERRUPTED:
        query = TaskQuery(caller_id=caller_id, handle=handle, context_id=context_id, state=state, limit=1)
        waiting += (await services.tasks.page(query)).tasks
    return max(waiting, key=lambda task: task.updated_at).id if waiting else ""


async def send_at_once(services: Services, incoming: Incoming, enter: Callable[[LookUpResult], Call]) -> Outcome:
    """Ask, by the trip to the ledger that finds the caller; or find what was asked already.

    `enter` makes the call of what is found; it is called in the ledger's thread.
    """
    made: list[TaskRun] = []

    def make(found: LookUpResult) -> TaskRun:
        made.append(new_plain_run(services, enter(found)))
        return made[0]

    begun: TaskRun | Exception
    try:
        begun = await services.dispatcher.ask_found(incoming.digest, incoming.handle, make)
    except Exception as failure:  # noqa: BLE001  raised again unless it leads to an answer
        begun = failure
    return await outcome_of(services, incoming, made, begun)


def new_plain_run(services: Services, call: Call) -> TaskRun:
    """The turn of a plain send, before its ask is decided.

    Raises:
        HasFollowUps: more has to be read first.
    """
    assert isinstance(call.request, Send)  # noqa: S101  for the type checker: it is a plain send
    if call.request.context_id and call.caller.agent.has_follow_ups:
        raise HasFollowUps
    return services.exchanges.new_run(call, call.request)


async def outcome_of(
    services: Services, incoming: Incoming, made: Sequence[TaskRun], begun: TaskRun | Exception
) -> Outcome:
    """The answer of a plain send that began, was refused, or is being answered already. `made`: has its turn.

    Raises:
        Exception: `begun`, if it is no more than an error.
    """
    call = incoming.call
    if isinstance(begun, Denied):
        await made[0].refuse(begun)
        begun = made[0]
    if not isinstance(begun, TaskRun | AlreadyAsked | HasFollowUps):
        raise begun
    assert call is not None and isinstance(call.request, Send)  # noqa: S101, PT018  for the type checker
    if isinstance(begun, HasFollowUps):
        return await take_send(services, call, call.request)
    if isinstance(begun, AlreadyAsked):
        return await _joined(services, call, call.request, begun)
    return await _outcome(services, call, call.request, begun)


def note_ask(call: Call, chat_id: str) -> None:
    """Let the record of the request name its ask, its caller and its agent."""
    if (note := call.note) is not None:
        note.chat_id, note.caller_id = chat_id, call.caller.identity.user_id
        note.agent_id = call.caller.agent.agent_id


async def _outcome(services: Services, call: Call, send: Send, run: Run) -> Outcome:
    """The answer of a turn that was started, joined or repeated."""
    note_ask(call, run.task.chat_id)
    is_stream = call.operation is Operation.STREAM
    streaming = TaskStreams(call.dialect, send, services.reader)
    if isinstance(run, RepeatedSend):
        return await _repeated(services, call, send, run, streaming)
    if isinstance(run, JoinedTask):
        if not is_stream:
            return (
                AwaitedAnswer(run, call)
                if send.waits
                else CompleteAnswer(call.dialect.render_answer(run.task, send))
            )
        is_direct = send.takes_direct and send.plain_is_direct
        frames = streaming.of_repeat(run) if is_direct else streaming.of_task(run.feed)
        return StreamedAnswer(frames, run)
    if send.push is not None:
        run.outlives_followers = True
    if is_stream:
        if send.takes_direct and send.plain_is_direct:
            return StreamedAnswer(streaming.of_direct(run), run)
        return StreamedAnswer(streaming.of_turn(run, may_be_direct=send.takes_direct), run)
    if send.waits or run.is_refused:
        return AwaitedAnswer(run, call)
    run.outlives_followers = True
    await run.start_feed()
    return CompleteAnswer(call.dialect.render_answer(run.opening, send))


async def _joined(services: Services, call: Call, send: Send, same: AlreadyAsked) -> Outcome:
    """Follow the turn that answers the same message, here or elsewhere; ask anew when it has just ended."""
    run: Run | None = services.exchanges.find(same.chat_id)
    if run is None:
        user_id = call.caller.identity.user_id
        run = await join(same, user_id, send, services.post, services.reader, _name_follower(call))
    if run is None:
        return await take_send(services, call, send)
    return await _outcome(services, call, send, run)


async def _approved(services: Services, call: Call, send: Send, task: Task) -> Outcome:
    """The task as it goes on once its caller has decided."""
    joined = await answer(services, call, send, task)
    note_ask(call, task.chat_id)
    if call.operation is Operation.STREAM:
        return StreamedAnswer(TaskStreams(call.dialect, send, services.reader).of_task(joined.feed))
    return (
        AwaitedAnswer(joined, replace(call, request=send))
        if send.waits
        else CompleteAnswer(call.dialect.render_answer(joined.task, send))
    )


async def _check_approval(services: Services, call: Call, task_id: str) -> None:
    """Raises AsksApproval when the caller has such a task, and it asks for that."""
    with suppress(RpcError):
        task = await find(services, call, task_id)
        if task.approvals:
            raise AsksApproval(task)


async def _nothing(services: Services, call: Call, send: Send, streaming: TaskStreams) -> Outcome:
    """The hub's own answer to a message without text or data parts; no agent is asked."""
    task = await _continuable(services, call, send) if send.task_id else None
    context_id = task.context_id if task else send.context_id or unguessable("context-")
    said = Message(unguessable("msg-"), Role.AGENT, (Part(text=NOTHING_TO_ASK),))
    shown = get_renderer(call.dialect.render_message)(context_id, said)
    return (
        StreamedAnswer(streaming.of_message(shown))
        if call.operation is Operation.STREAM
        else CompleteAnswer(shown)
    )


async def _keyed(services: Services, call: Call, send: Send) -> Run:
    """The turn of a key, or what it was; a send that began nothing leaves its key free."""
    identity, agent = call.caller.identity, call.caller.agent
    body = digest_of(send)
    task_id = send.task_id or new_task_id(agent)
    claim = await take(identity.user_id, agent.handle, check(call.key), body, task_id=task_id)
    if not claim.is_new:
        if running := services.exchanges.find(claim.chat_id):
            return running
        first = services.exchanges.new_run(call, send, claim)
        keep_place = partial(services.exchanges.keep, claim.chat_id)
        return RepeatedSend(claim, first.task, wait_s=first.ask.wait_s, keep_place=keep_place)
    try:
        run = await _start(services, call, send, claim)
    except BaseException:
        await release_key(claim)
        raise
    if isinstance(run, TaskRun) and run.is_refused:
        await release_key(claim)
    return run


async def _repeated(
    services: Services, call: Call, send: Send, repeat: RepeatedSend, streaming: TaskStreams
) -> Outcome:
    """A stream shows the task as it is, and then what happens; else the answer is the first one's."""
    if call.operation is not Operation.STREAM and send.waits:
        return AwaitedAnswer(repeat, call)
    if not await repeat.answered(0):
        task = await services.reader.find(repeat.task.id, call.caller.identity.user_id)
        if task is not None and call.operation is Operation.STREAM:
            return StreamedAnswer(streaming.of_task(await services.reader.follow(task)))
        if task is not None:
            return CompleteAnswer(call.dialect.render_answer(task, send))
    if call.operation is Operation.STREAM:
        return StreamedAnswer(streaming.of_repeat(repeat))
    return CompleteAnswer(call.dialect.render_answer(repeat.task, send))


async def _start(
    services: Services, call: Call, send: Send, claim: KeyClaim | None = None
) -> TaskRun | JoinedTask:
    exchanges = services.exchanges
    if send.push is not None:
        await services.pushes.check(send.push, IN_SEND)
    if not send.task_id:
        return await exchanges.start(call, send, claim)
    for _ in range(GO_ON_TRIES):
        task = await find(services, call, send.task_id)
        if claim is None and send.push is None and is_being_answered(task, send):
            _check_context(task, send)
            return exchanges.find(task.chat_id) or await _join_continued(services, call, send, task)
        _check_continuable(task, send)
        if (run := await exchanges.continue_task(call, send, task, claim)) is not None:
            return run
    raise not_continuable(State.WORKING)


async def _join_continued(services: Services, call: Call, send: Send, task: Task) -> JoinedTask:
    """Follow the turn, of another process, that the same message to its task began."""
    follower = _name_follower(call)
    await services.post.send(task.home, JoinTurn(task.chat_id, follower=follower))
    return JoinedTask(await services.reader.follow(task), send, services.reader, follower)


def _name_follower(call: Call) -> str:
    """A name by which another process knows this request, if the client may cancel by leaving; else empty."""
    return unguessable("follower-") if call.may_cancel else ""


async def _continuable(services: Services, call: Call, send: Send) -> Task:
    """The task that a message continues."""
    task = await find(services, call, send.task_id)
    _check_continuable(task, send)
    return task


def _check_context(task: Task, send: Send) -> None:
    if send.context_id and send.context_id != task.context_id:
        raise other_context()


def _check_continuable(task: Task, send: Send) -> None:
    _check_context(task, send)
    if task.approvals:
        raise AsksApproval(task)
    if not task.is_interrupted:
        raise not_continuable(task.state)
