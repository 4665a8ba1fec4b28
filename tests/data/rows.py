"""An owner with a row in every table, each with a word of their own in it."""

import json
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from a2a_bridge.models import (
    AnswerShare,
    Push,
    PushConfig,
    RecordedExchange,
    SendKey,
    StoredEvent,
    StoredTask,
    Thread,
    ThreadTask,
)
from accounts.groups import add_member, create_group
from accounts.models import Invitation, LoginCode, Passkey, ProviderIdentity, ScimGroup, ScimUser, User
from agents.models import (
    Agent,
    AgentGrant,
    AgentRank,
    Alert,
    AlertAddress,
    AlertRule,
    CallerBlock,
    CallerBudget,
    DailyUsage,
    Event,
    FailureCaller,
    FailureDay,
    FailureGroup,
    Favourite,
    FollowUp,
    Halt,
    Mail,
    OpMessage,
    PermissionRequest,
    ProblemNote,
    Rating,
    RemoteCard,
    RemoteName,
    RemoteServer,
    Share,
    TokenUsage,
    Turn,
)
from agents.transcript import files
from agnt.models import (
    Booking,
    Breaker,
    Cancellation,
    Interaction,
    Invoice,
    KeyUsage,
    SeenEnvelope,
    SeenSignature,
    UsageEvent,
    Venue,
)
from agnt.service.keys import mint_key
from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet, SavedQuestion
from gateway.models import (
    EnvelopeKey,
    FrameRecord,
    HeldEntry,
    Letter,
    Proposal,
    ProtocolArtifact,
    ProtocolStep,
    ProtocolTask,
    SessionEntry,
    SessionLog,
    TeamAgent,
    TeamPolicy,
    Vote,
)
from gateway.service.session_entries import seal_content
from tests.native.rows import Person, make_agent, make_client_grant, make_session, make_turn, person
from webhooks.models import Delivery, Subscription

WORD, OTHERS_WORD = "canaryone", "canarytwo"


def owner_of_everything(word: str, other: Person) -> Person:
    """A user whose login begins with the word, and who wrote it wherever one can. `other` dealt with them."""
    who = person(f"{word}-login")
    user, now = who.user, timezone.now()
    User.objects.filter(pk=user.pk).update(
        github_id=abs(hash(word)) % 10**9, avatar_url=f"https://a.example/{word}"
    )
    user.refresh_from_db()
    agent = make_agent(
        user, f"{word}-agent", tagline=word, description=word, claude_md=word, suggested_prompts=[word]
    )
    session = agent.session
    session.host = session.cwd = session.os_user = word
    session.save()
    far = RemoteServer.objects.create(
        session=make_session(user, f"{word}-remote"), card_url=f"https://{word}.example"
    )
    RemoteCard.objects.create(server=far, approved={"name": word}, waiting={"name": word})
    theirs = make_agent(other.user, f"for-{user.pk}")
    asked = make_turn(theirs, user, question=word)
    was_asked = make_turn(agent, other.user, question=f"to {word}")
    ProblemNote.objects.create(turn=asked, agent=theirs, caller=user, text=word)
    ProblemNote.objects.create(turn=was_asked, agent=agent, caller=other.user, text="slow")
    for turn, of, caller in ((asked, theirs, user), (was_asked, agent, other.user)):
        Rating.objects.create(turn=turn, agent=of, caller=caller, is_good=False, note=f"of {word}", rated_at=now)
    for place, turn in ((theirs.session, asked), (session, was_asked)):
        said = {"chatId": turn.chat_id, "text": f"echo {word}", "authorLogin": user.login}
        Event.objects.create(session=place, kind="chat", type="prompt", payload=json.dumps(said), ts=now)
    FollowUp.objects.create(
        chat_id=asked.chat_id, agent=theirs, caller=user, context_id=word, text=f"more {word}", sent_at=now
    )
    mine_of_others = {"text": f"ask @{user.login}, or @{agent.handle}", "kept": "a plain word"}
    Event.objects.create(
        session=theirs.session, kind="chat", type="note", payload=json.dumps(mine_of_others), ts=now
    )
    Share.objects.create(session=theirs.session, user=user, role="approver", shared_by=other.user)
    Share.objects.create(session=session, user=other.user, role="viewer", shared_by=user)
    OpMessage.objects.create(session=theirs.session, author=user, text=word, mentions=[])
    OpMessage.objects.create(
        session=theirs.session, author=other.user, text=f"@{user.login}, look", mentions=[user.login]
    )
    for place in (session, theirs.session):
        files.store(place, user, files.Upload(filename=f"{word}.txt", mime="text/plain", data=word.encode()))
        decided = {"status": "denied", "resolver": user, "resolved_at": now, "message": word}
        PermissionRequest.objects.create(
            session=place, request_id=f"r-{user.pk}", tool="t", expires_at=now, **decided
        )
    proposal = Proposal.objects.create(
        owner=user,
        key=f"{word}-key",
        alias=f"{word}-alias",
        proposer=word,
        text=word,
        reasoning=word,
        members=[word],
        threshold="simple",
        created_at=now,
        deadline=now + timedelta(days=1),
    )
    Vote.objects.create(proposal=proposal, voter=word, vote="approve", reasoning=word, voted_at=now)
    TeamAgent.objects.create(owner=user, name=word, role=word, config={"note": word}, may_send_to=[word])
    TeamPolicy.objects.create(owner=user, members=[word], steward=word)
    TokenUsage.objects.create(
        session=session, owner=user, cc_session_id=word, captured_at=now, model=word, reason="final"
    )
    DailyUsage.objects.create(agent=agent, day=now.date(), queries=1)
    AgentGrant.objects.create(agent=theirs, user=user)
    AgentGrant.objects.create(agent=agent, user=other.user)
    CallerBudget.objects.create(agent=theirs, caller=user, daily_budget=3, day=now.date(), queries=1)
    CallerBudget.objects.create(agent=agent, caller=other.user, daily_budget=4)
    Halt.objects.create(kind="agent", agent=agent, by_staff=False, reason=word, made_by=user)
    Halt.objects.create(kind="caller", user=other.user, by_staff=True, reason=word, made_by=user, lifted_at=now)
    for failing, shape, caller in ((agent, word, other.user), (theirs, "failed", user)):
        group = FailureGroup.objects.create(
            agent=failing,
            reason="agent_failed",
            shape=shape,
            digest="d",
            count=1,
            first_at=now,
            last_at=now,
            opened_at=now,
        )
        FailureDay.objects.create(group=group, day=now.date(), count=1)
        FailureCaller.objects.create(group=group, caller=caller, count=1)
    Turn.objects.filter(pk=asked.pk).update(failure_text=f"cannot {word}")
    asked_set = QuestionSet.objects.create(agent=agent, name=word)
    saved = SavedQuestion.objects.create(
        question_set=asked_set, position=0, text=word, expected="contains", expectation=word
    )
    evaluation = EvaluationRun.objects.create(
        question_set=asked_set, cause="by_hand", card_digest="d", started_at=now, ended_at=now
    )
    EvaluationResult.objects.create(run=evaluation, question=saved, state="passed", answer=word, ended_at=now)
    AgentRank.objects.create(agent=agent, asks=1, ranked_at=now)
    Favourite.objects.create(user=user, agent=theirs)
    Favourite.objects.create(user=other.user, agent=agent)
    Agent.objects.filter(pk=agent.pk).update(tags=[word])
    AlertRule.objects.create(owner=user, kind="budget", threshold=80)
    AlertAddress.objects.create(owner=user, email=f"{word}@example.org", confirmed_at=now)
    Alert.objects.create(agent=agent, kind="budget", threshold=80, value=90, since=now, raised_at=now)
    Mail.objects.create(
        owner=user,
        to=f"{word}@example.org",
        subject=word,
        contents=word,
        message_id=word,
        queued_at=now,
        next_attempt_at=now,
    )
    CallerBlock.objects.create(owner=user, caller=other.user)
    Letter.objects.create(
        owner=user,
        recipient=agent.session,
        addressed_to=word,
        sender_owner=user,
        sender=word,
        message_id=word,
        envelope=json.dumps({"content": {"role": "user", "content": word}, "metadata": {}}),
        bytes=1,
        received_at=now,
    )
    _network(user, word, agent)
    remote = RemoteServer.objects.create(session=theirs.session, card_url="https://far.example")
    FrameRecord.objects.create(
        owner=user, at=now, source=user.login, destination=word, type="message", outcome="served", bytes=1
    )
    FrameRecord.objects.create(
        owner=other.user,
        at=now,
        source="peer",
        destination=f"@{user.login}/agent",
        type="message",
        outcome="served",
        bytes=1,
    )
    EnvelopeKey.objects.create(owner=user, key_id=f"key-{word}", name=word, secret="sealed")
    RemoteName.objects.create(server=remote, caller=user, kind="context", ours=word, theirs=word, used_at=now)
    for subscriber, chat in ((user, was_asked), (other.user, asked)):
        hook = Subscription.objects.create(owner=subscriber, url="https://h.example", events="*", secret="sealed")
        told = {"askerLogin": user.login, "routeId": chat.chat_id, "question": word, "reply": f"echo {word}"}
        Delivery.objects.create(
            subscription=hook,
            event_id=f"e-{hook.pk}",
            type="agent.replied",
            payload=json.dumps(told),
            status="delivered",
            queued_at=now,
        )
    for caller, asked_agent in ((user, theirs), (other.user, agent)):
        task = stored_task(caller, f"t-{user.pk}-{caller.pk}", asked_agent.handle, word)
        StoredEvent.objects.create(task=task, seq=1, body=json.dumps({"text": word}))
        thread = Thread.objects.create(
            caller=caller, agent=asked_agent, context_id=word, title=word, began_at=now, last_asked_at=now
        )
        ThreadTask.objects.create(
            thread=thread, task=task, asked_at=now, whose=f"u{caller.pk}x", question=word, answer=word
        )
        RecordedExchange.objects.create(
            chat_id=f"exchange-{user.pk}-{caller.pk}",
            caller=caller,
            agent=asked_agent,
            protocol="A2A 1.0 over JSON-RPC",
            method="POST",
            path=f"/api/a2a/v1/agents/{asked_agent.handle}",
            request_headers="{}",
            request_body=json.dumps({"text": word}) if caller == user else "{}",
            request_bytes=1,
            status=200,
            response_headers="{}",
            response_bytes=1,
            received_at=now,
            ended_at=now,
        )
        SendKey.objects.create(
            caller=caller,
            handle=asked_agent.handle,
            key=f"{user.pk}",
            body="b",
            task_id=task.pk,
            chat_id="c",
            result=word,
        )
    for owner, of, to in ((user, theirs, other.user), (other.user, agent, user)):
        AnswerShare.objects.create(
            owner=owner,
            agent=of,
            task_id=f"s-{user.pk}",
            context_id=word,
            audience="user",
            user=to,
            title=word,
            content=json.dumps([word]),
            content_bytes=1,
            created_at=now,
            expires_at=now + timedelta(days=1),
        )
    sealed = seal_content(f"{word} in a session")
    log = SessionLog.objects.create(
        owner=user, agent=word, session_id=word, entries=1, created_at=now, last_entry_at=now
    )
    SessionEntry.objects.create(log=log, timestamp_ms=1, role="user", content=sealed)
    HeldEntry.objects.create(owner=user, key=f"h-{word}", process_id="p", about="{}", content=sealed)
    protocol_task = ProtocolTask.objects.create(
        owner=user, agent="main", input=word, additional_input={"is": word}
    )
    step = ProtocolStep.objects.create(
        task=protocol_task, status="completed", input=word, output=word, agent_task_id="t", chat_id="c", until=now
    )
    ProtocolArtifact.objects.create(
        task=protocol_task, step=step, file_name=f"{word}.txt", mime="text/plain", size=4, data=word.encode()
    )
    config = PushConfig.objects.create(
        task_id=word, config_id=word, caller=user, url=f"https://{word}.example", touched_at=now
    )
    Push.objects.create(config=config, seq=1, payload=json.dumps({"text": word}), status="failed", queued_at=now)
    LoginCode.objects.create(
        digest=f"d-{user.pk}", purpose="cli", user=user, code_challenge="c", machine_id=word, expires_at=now
    )
    make_client_grant(user, app_name=word, user_agent=word)
    ProviderIdentity.objects.create(user=user, issuer=f"https://{word}.example", subject=word)
    Passkey.objects.create(user=user, credential_id=word, public_key=word, name=word)
    group = create_group(f"team-{user.pk}", "Team", made_by=other.user)
    add_member(group, user, by=other.user)
    ScimUser.objects.create(user=user, user_name=word, external_id=word, profile={"displayName": word})
    ScimGroup.objects.create(group=group, display_name=f"team-{user.pk}")
    for login, maker in ((user.login, None), (f"{word}-guest", user)):
        Invitation.objects.create(digest=f"i-{login}", login=login, made_by=maker, expires_at=now)
    who.user.credentials.update(name=word, machine_id=word, user_agent=word, last_used_at=now - timedelta(hours=1))
    return who


def _network(owner: User, word: str, agent: Agent) -> None:
    """A network with a venue, a key, and a booking that is invoiced."""
    now = timezone.now()
    key = mint_key(owner, word, customer=word, senders=[word]).key
    network = key.network
    venue = Venue.objects.create(
        network=network, slug=word, agent_name=word, name=word, description=word, tags=[word], agent=agent
    )
    Breaker.objects.create(network=network, venue=venue, failures=[[1.5, word]])
    KeyUsage.objects.create(key=key, day=now.date(), calls=1)
    booking = Booking.objects.create(network=network, venue=venue, key=key, sender=word, user_note=word)
    Cancellation.objects.create(
        network=network, venue=venue, customer=word, sender=word, reservation={"slot_id": word}
    )
    invoice = Invoice.objects.create(network=network, customer=word, day=now.date(), external_id=word)
    charge = {"key": key, "customer": word, "amount_cents": 25, "at": now}
    UsageEvent.objects.create(network=network, booking=booking, invoice=invoice, **charge)
    event = {"sender": word, "intent": "booking.confirm"}
    SeenEnvelope.objects.create(
        network=network,
        customer=word,
        key=key,
        timestamp="t",
        payload_digest="d",
        answer=word,
        expires_at=now,
        **event,
    )
    SeenSignature.objects.create(network=network, signature="s", event_digest="d", expires_at=now)
    done = {"status": "ok", "http_status": 200, "latency_ms": 1, "metadata": {"userAgent": word}}
    Interaction.objects.create(network=network, key=key, at=now, venue=venue, booking=booking, **event, **done)


def stored_task(caller: User, pk: str, handle: str, word: str) -> StoredTask:
    numbers = dict.fromkeys(("seq", "snapshot_seq", "snapshot_bytes", "events_bytes", "schema_version"), 1)
    return StoredTask.objects.create(
        id=pk,
        caller=caller,
        handle=handle,
        context_id=word,
        chat_id="c",
        home="h",
        state="completed",
        has_ended=True,
        updated_at=timezone.now(),
        snapshot=json.dumps({"text": word}),
        **numbers,
    )


def places_of(word: str) -> set[str]:
    """`table.column` of every value in the database that holds a word, in any case."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                found |= {f"{table}.{name}" for name, value in zip(names, row, strict=True) if _holds(value, word)}
    return found


def _holds(value: Any, word: str) -> bool:
    if isinstance(value, bytes | memoryview):
        return word.encode() in bytes(value)
    return word.lower() in str(value).lower()
