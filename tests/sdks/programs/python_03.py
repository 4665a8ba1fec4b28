"""The official Python client of A2A 0.3 in scenarios: URL, TOKEN, SCENARIO, OPTIONS.

Run by the Python of its own environment. URL is the agent's base address, OPTIONS a JSON object. Prints a JSON
line for each thing seen, as `output.say` describes; what it is asked for `output.serve` reads.
"""

import asyncio
import uuid
from contextlib import aclosing
from typing import Any

from a2a.client import AuthInterceptor, Client, ClientConfig, ClientFactory, CredentialService
from a2a.client.helpers import create_text_message_object
from a2a.types import (
    FilePart,
    Message,
    Part,
    PushNotificationConfig,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from output import ENDED, attempt, say, serve
from pydantic import BaseModel

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
        """Find the agent by its card; all settings are the SDK's own, but for those given."""
        config = ClientConfig(**settings) if settings else None
        signed, path = [AuthInterceptor(Token(self.token))], self.options.get("path")
        return await ClientFactory.connect(self.url, config, interceptors=signed, relative_card_path=path)

    def ask(self, text: str | None = None, **fields: Any) -> Message:
        message = create_text_message_object(content=self.options.get("text", "hello") if text is None else text)
        message.parts += [Part(FilePart(file=file)) for file in self.options.get("files", [])]
        return message.model_copy(update=fields)

    async def ask_and_wait(self, client: Client, message: Message) -> Task | Message:
        """Send by a client without streaming, and say the answer."""
        [answer] = [happening(event) async for event in client.send_message(message)]
        say("answer", as_json(answer))
        return answer

    async def card(self) -> None:
        client = await self.connect()
        say("card", as_json(await client.get_card()))
        say("transport", type(client._transport).__name__)

    async def send(self) -> None:
        await self.ask_and_wait(await self.connect(streaming=False), self.ask())

    async def stream(self) -> None:
        await say_all((await self.connect()).send_message(self.ask()))

    async def poll(self) -> None:
        client = await self.connect(streaming=False, polling=True)
        task = await self.ask_and_wait(client, self.ask())
        while task.status.state.value not in ENDED:
            await asyncio.sleep(0.1)
            task = await client.get_task(TaskQueryParams(id=task.id))
        say("task", as_json(task))

    async def get(self) -> None:
        client = await self.connect(streaming=False)
        task = await self.ask_and_wait(client, self.ask())
        say("task", as_json(await client.get_task(TaskQueryParams(id=task.id, history_length=10))))
        say("brief", as_json(await client.get_task(TaskQueryParams(id=task.id, history_length=1))))
        await attempt(client.get_task(TaskQueryParams(id=UNKNOWN)))

    async def cancel(self) -> None:
        client = await self.connect()
        async for event in client.send_message(self.ask()):
            say("event", as_json(happening(event)))
            if is_note(event):
                task_id = event[0].id
                say("canceled", as_json(await client.cancel_task(TaskIdParams(id=task_id))))
        await attempt(client.cancel_task(TaskIdParams(id=task_id)))

    async def subscribe(self) -> None:
        client = await self.connect()
        async with aclosing(client.send_message(self.ask())) as events:
            async for event in events:
                say("event", as_json(happening(event)))
                if is_note(event):
                    task_id = event[0].id
                    break
        await say_all(client.resubscribe(TaskIdParams(id=task_id)), "again")
        await attempt(say_all(client.resubscribe(TaskIdParams(id=task_id)), "late"))

    async def follow_up(self) -> None:
        client = await self.connect(streaming=False)
        task = await self.ask_and_wait(client, self.ask())
        more = self.ask(self.options["more"], task_id=task.id, context_id=task.context_id)
        await self.ask_and_wait(client, more)
        await attempt(self.ask_and_wait(client, self.ask("again", task_id=task.id)))

    async def follow_up_by_stream(self) -> None:
        client = await self.connect()
        async for event in client.send_message(self.ask()):
            say("event", as_json(happening(event)))
            task_id = event[0].id
        await say_all(client.send_message(self.ask(self.options["more"], task_id=task_id)), "again")

    async def push(self) -> None:
        client = await self.connect(streaming=False)
        wanted = PushNotificationConfig(url=self.options["hook"], token="t0ken")
        await attempt(
            client.set_task_callback(TaskPushNotificationConfig(task_id=UNKNOWN, push_notification_config=wanted))
        )


def happening(event: Any) -> Any:
    """The event that came, of the SDK's pair of the task so far and the event."""
    if isinstance(event, tuple):
        task, update = event
        return task if update is None else update
    return event


def is_note(event: Any) -> bool:
    update = happening(event)
    return (
        update.kind == "status-update" and update.status.state == "working" and update.status.message is not None
    )


def as_json(value: BaseModel) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def say_all(events: Any, step: str = "event") -> None:
    async for event in events:
        say(step, as_json(happening(event)))


if __name__ == "__main__":
    serve(Scenarios)
