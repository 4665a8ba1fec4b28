"""A socket of an agent, for tests that give its replies themselves."""

import asyncio
from dataclasses import dataclass, field

from agents.core.errors import NotDelivered
from agents.core.post import PostedPrompt, Withdrawn
from agents.links.sockets import ToSocket
from agents.models.choices import TurnFailure


@dataclass
class Desk:
    """A `ServedSocket` that notes what it is given. `takes_at_once`: prompts; `is_broken`: then it raises."""

    session_id: int = 1
    takes_at_once: bool = False
    is_broken: bool = False
    may_be_direct: bool = False
    is_over: bool = False
    prompts: list[PostedPrompt] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)

    def prompt_now(self, prompt: PostedPrompt) -> bool:
        if self.takes_at_once:
            self.prompts.append(prompt)
        if self.is_broken:
            raise RuntimeError
        return self.takes_at_once

    async def prompt(self, prompt: PostedPrompt) -> None:
        await asyncio.sleep(0)
        if self.is_over:
            raise NotDelivered
        self.prompts.append(prompt)

    async def take(self, message: ToSocket) -> None:
        if isinstance(message, Withdrawn):
            self.withdrawn.append(message.chat_id)
        else:
            self.is_over = True

    async def close_from_hub(
        self, code: int, *, bye: str = "", retry: bool = True, reason: TurnFailure = TurnFailure.CHANNEL_LOST
    ) -> None:
        self.is_over = True

    async def refuse(self, code: str, message: str) -> None:
        self.is_over = True

    def is_idle(self, now: float) -> bool:
        return True

    def is_due(self, now: float) -> bool:
        return False

    async def check_alive(self, now: float) -> None:
        return None
