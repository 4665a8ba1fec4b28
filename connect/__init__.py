"""Make any program an agent of a Clawbridge hub.

This folder stands alone: copy it anywhere, `pip install websockets`, and run `python -m connect --help`.
Only `--agnt` needs a part of another one, `agnt`, which `connect.pyz` carries (docs/adr/0145).
Another asyncio program can be the agent itself:

    async def answer(question: Question) -> AsyncIterator[str]:
        yield f"you asked: {question.text}"

    await Agent(hub="https://hub.example", token="ck_live_...", answer=answer).run()
"""

from connect.agent import Agent
from connect.answers import Answer, AnswerFailed, echo
from connect.command import Command
from connect.ending import Ending
from connect.frames import Question, Welcome
from connect.reply_parts import Artifact, AuthRequired, Failed, InputRequired, Rejected, ReplyPart, Status, Usage

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
