"""The content of a completion: the reply of a task as text, its artifacts as Markdown."""

import json
import re
from urllib.parse import quote

from msgspec import UNSET

from a2a_bridge.wire.task import Task, text_in
from agents.transcript.pieces import Part, joined_texts

IMAGE = re.compile(r"image/[\w.+-]+")
MARKED = re.compile(r"([\\\[\]()<>`*_!])")


def reply_of(task: Task) -> str:
    """The text of a task: its reply, and behind it what its agent asks back."""
    if not task.is_interrupted or task.message is None:
        return task.reply_text
    asked = text_in(task.message.parts)
    return asked if asked.startswith(task.reply_text) else joined_texts([task.reply_text, asked])


def attachments_of(task: Task, public_url: str) -> str:
    """The parts that the agent made besides the reply, as Markdown."""
    page = f"{public_url}/agents/{quote(task.handle)}?task={quote(task.id)}"
    return joined_texts(_show(part, page) for _, part in task.besides_reply)


def content_of(task: Task, public_url: str) -> str:
    """All of it."""
    return joined_texts([reply_of(task), attachments_of(task, public_url)])


def _show(part: Part, page: str) -> str:
    name = MARKED.sub(r"\\\1", part.filename or "")
    kind = "!" if IMAGE.fullmatch(part.media_type) else ""
    if isinstance(part.raw, str):
        raw = part.raw.replace("-", "+").replace("_", "/")
        target = f"data:{part.media_type};base64,{raw}" if kind else page
        return f"{kind}[{name or 'file'}]({target})"
    if isinstance(part.url, str):
        if not part.url.lower().startswith(("https://", "http://")):
            return f"{name or 'file'}: {part.url}"
        return f"{kind}[{name or 'file'}](<{quote(part.url, safe=_KEPT)}>)"
    if part.data is not UNSET:
        return f"```json\n{json.dumps(part.data, ensure_ascii=False)}\n```"
    text = part.text if isinstance(part.text, str) else ""
    return f"{name}:\n\n{text}" if name and text else text


_KEPT = "%/:?#[]@!$&'()*+,;=~-._"
