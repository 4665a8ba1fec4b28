"""The official Python client of A2A 1.0 in scenarios: URL, TOKEN, SCENARIO, OPTIONS.

Run by the Python of its own environment. URL is the agent's base address, OPTIONS a JSON object. Prints a JSON
line for each thing seen, as `output.say` describes; what it is asked for `output.serve` reads.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from a2a.client import AuthInterceptor, Client, ClientConfig, CredentialService, create_client
from a2a.helpers import new_text_message
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict
from output import ENDED, attempt, say, serve

UNKNOWN = str(uuid.uuid4())


class Token(CredentialService):
    """The one token we have, for whatever scheme the card names."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def get_credentials(self, security_scheme_name: str, context: object) -> str:
        return self.token


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.url, self.token, self.options = url, token, options

    async def connect(self, **settings: Any) -> Client:
        """Find the agent by its card; all settings are the SDK's own, but for a binding that was asked for."""
        if binding := self.options.get("binding"):
            settings["supported_protocol_bindings"] = [binding]
        config = ClientConfig(**settings) if settings else None
        signed = [AuthInterceptor(Token(self.token))]
        return await create_client(self.url, config, signed, self.options.get("path"))

    def ask(self, text: str | None = None, **fields: Any) -> a2a.SendMessageRequest:
        words = self.options.get("text", "hello") if text is None else text
        return a2a.SendMessageRequest(message=new_text_message(words, role=a2a.ROLE_USER, **fields))

    async def ask_and_wait(self, client: Client, request: a2a.SendMessageRequest) -> a2a.Task:
        """Send by a client without streaming, and say the answer."""
        [answer] = [event async for event in client.send_message(request)]
        say("answer", MessageToDict(answer))
        return answer.task

    async def card(self) -> None:
        async with await self.connect() as client:
            say("card", MessageToDict(client._card))
            say("transport", type(client._transport).__name__)

    async def send(self) -> None:
        async with await self.connect(streaming=False) as client:
            await self.ask_and_wait(client, self.ask())

    async def stream(self) -> None:
        async with await self.connect() as client:
            await say_all(client.send_message(self.ask()))

    async def poll(self) -> None:
        async with await self.connect(streaming=False, polling=True) as client:
            task = await self.ask_and_wait(client, self.ask())
            while a2a.TaskState.Name(task.status.state) not in ENDED:
                await asyncio.sleep(0.1)
                task = await client.get_task(a2a.GetTaskRequest(id=task.id))
            say("task", MessageToDict(task))

    async def get(self) -> None:
        async with await self.connect(streaming=False) as client:
            task = await self.ask_and_wait(client, self.ask())
            say("task", MessageToDict(await client.get_task(a2a.GetTaskRequest(id=task.id))))
            brief = await client.get_task(a2a.GetTaskRequest(id=task.id, history_length=1))
            say("brief", MessageToDict(brief))
            await attempt(client.get_task(a2a.GetTaskRequest(id=UNKNOWN)))

    async def cancel(self) -> None:
        async with await self.connect() as client:
            async for event in client.send_message(self.ask()):
                say("event", MessageToDict(event))
                if is_note(event):
                    task_id = event.status_update.task_id
                    canceled = await client.cancel_task(a2a.CancelTaskRequest(id=task_id))
                    say("canceled", MessageToDict(canceled))
            await attempt(client.cancel_task(a2a.CancelTaskRequest(id=task_id)))

    async def subscribe(self) -> None:
        async with await self.connect() as client:
            async with aclosing(client.send_message(self.ask())) as events:
                async for event in events:
                    say("event", MessageToDict(event))
                    if is_note(event):
                        task_id = event.status_update.task_id
                        break
            await say_all(client.subscribe(a2a.SubscribeToTaskRequest(id=task_id)), "again")
            await attempt(say_all(client.subscribe(a2a.SubscribeToTaskRequest(id=task_id)), "late"))

    async def follow_up(self) -> None:
        async with await self.connect(streaming=False) as client:
            task = await self.ask_and_wait(client, self.ask())
            more = self.ask(self.options["more"], task_id=task.id, context_id=task.context_id)
            await self.ask_and_wait(client, more)
            await attempt(self.ask_and_wait(client, self.ask("again", task_id=task.id)))

    async def follow_up_by_stream(self) -> None:
        async with await self.connect() as client:
            async for event in client.send_message(self.ask()):
                say("event", MessageToDict(event))
                task_id = event.task.id or event.status_update.task_id or event.artifact_update.task_id
            await say_all(client.send_message(self.ask(self.options["more"], task_id=task_id)), "again")

    async def list_tasks(self) -> None:
        async with await self.connect(streaming=False) as client:
            first = await self.ask_and_wait(client, self.ask())
            await self.ask_and_wait(client, self.ask(context_id=first.context_id))
            page = a2a.ListTasksRequest(context_id=first.context_id, page_size=1)
            for _ in range(2):
                listed = await client.list_tasks(page)
                say("page", MessageToDict(listed, always_print_fields_with_no_presence=True))
                page.page_token = listed.next_page_token
            whole = a2a.ListTasksRequest(
                context_id=first.context_id, status=a2a.TASK_STATE_COMPLETED, include_artifacts=True
            )
            say("page", MessageToDict(await client.list_tasks(whole), always_print_fields_with_no_presence=True))
            await attempt(client.list_tasks(a2a.ListTasksRequest(page_token="nonsense")))

    async def push(self) -> None:
        async with await self.connect(streaming=False) as client:
            task = await self.ask_and_wait(client, self.ask())
            wanted = a2a.TaskPushNotificationConfig(task_id=task.id, url=self.options["hook"], token="t0ken")
            made = await client.create_task_push_notification_config(wanted)
            say("created", MessageToDict(made))
            one = {"task_id": task.id, "id": made.id}
            got = await client.get_task_push_notification_config(a2a.GetTaskPushNotificationConfigRequest(**one))
            say("got", MessageToDict(got))
            every = a2a.ListTaskPushNotificationConfigsRequest(task_id=task.id)
            say("listed", MessageToDict(await client.list_task_push_notification_configs(every)))
            gone = a2a.DeleteTaskPushNotificationConfigRequest(**one)
            await client.delete_task_push_notification_config(gone)
            say("left", MessageToDict(await client.list_task_push_notification_configs(every)))
            await attempt(
                client.get_task_push_notification_config(a2a.GetTaskPushNotificationConfigRequest(**one))
            )

    async def extended_card(self) -> None:
        async with await self.connect() as client:
            say("card", MessageToDict(await client.get_extended_agent_card(a2a.GetExtendedAgentCardRequest())))


def is_note(event: a2a.StreamResponse) -> bool:
    status = event.status_update.status
    return status.state == a2a.TASK_STATE_WORKING and status.HasField("message")


async def say_all(events: AsyncIterator[a2a.StreamResponse], step: str = "event") -> None:
    async for event in events:
        say(step, MessageToDict(event))


if __name__ == "__main__":
    serve(Scenarios)
