"""Make any program an agent of a Clawbridge hub.

`clawbridge connect --help` shows the command; `connect.pyz` is the same in one file that Python alone runs.
Another asyncio program can be the agent itself:

    async def answer(question: Question) -> AsyncIterator[str]:
        yield f"you asked: {question.text}"

    await Agent(hub="https://hub.example", token="ck_live_...", answer=answer).run()
"""

from clawbridge.connect.agent import Agent
from clawbridge.connect.answers import Answer, AnswerFailed, echo
from clawbridge.connect.command import Command
from clawbridge.connect.connection import Ending
from clawbridge.connect.frames import Question, Welcome
from clawbridge.connect.reply_parts import (
    Artifact,
    AuthRequired,
    Failed,
    InputRequired,
    Rejected,
    ReplyPart,
    Status,
    Usage,
)

__all__ = [
    "Agent",
    "Answer",
    "AnswerFailed",
    "Artifact",
    "AuthRequired",
    "Command",
    "Ending",
    "Failed",
    "InputRequired",
    "Question",
    "Rejected",
    "ReplyPart",
    "Status",
    "Usage",
    "Welcome",
    "echo",
]
