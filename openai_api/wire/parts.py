"""The parts of messages: text and files of a request, and what an agent made, as Markdown."""

import json
import re
from typing import Annotated
from urllib.parse import quote

from msgspec import UNSET, Meta, Struct

from a2a_bridge.wire.dialects.reading import check_content, check_printable, invalid
from a2a_bridge.wire.dialects.v1.params import MAX_URL_CHARS
from a2a_bridge.wire.task import Task
from agents.transcript.pieces import Part, joined_texts, text_in

MAX_NAME_CHARS = 255
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")
IMAGE = re.compile(r"image/[\w.+-]+")
MARKED = re.compile(r"([\\\[\]()<>`*_!])")


def read_file(url: str, name: str, where: str) -> Part:
    """A file that is a `data:` URL, or an address of the web. `where`: the field it stands in.

    Raises:
        RpcError: -32602, it is neither, or not sound.
    """
    name = check_printable(name, where)
    if data := DATA_URL.match(url):
        part = Part(raw=url[data.end() :], media_type=data[1] or "", filename=name)
        check_content(part, where)
        return part
    if not url.lower().startswith(("https://", "http://")) or len(url) > MAX_URL_CHARS:
        raise invalid(where, f"{where}: want a data: URL with base64, or an address of the web")
    return Part(url=check_printable(url, where), filename=name)


class TextPart(Struct, frozen=True, tag_field="type", tag="text"):
    """Text."""

    text: str


class RefusalPart(Struct, frozen=True, tag_field="type", tag="refusal"):
    """The words of a model that refused to answer."""

    refusal: str


class ImageUrl(Struct, frozen=True):
    """The address of an image: a `data:` URL with base64, or an address of the web."""

    url: str


class ImagePart(Struct, frozen=True, tag_field="type", tag="image_url"):
    """An image."""

    image_url: ImageUrl

    def read(self, where: str) -> Part:
        """The image as a file."""
        return read_file(self.image_url.url, "", f"{where}.image_url.url")


class Audio(Struct, frozen=True):
    """Sound in base64."""

    data: str
    format: Annotated[str, Meta(max_length=20)]


class AudioPart(Struct, frozen=True, tag_field="type", tag="input_audio"):
    """Sound."""

    input_audio: Audio

    def read(self, where: str) -> Part:
        """The sound as a file."""
        media_type = check_printable(f"audio/{self.input_audio.format}", f"{where}.input_audio.format")
        part = Part(raw=self.input_audio.data, media_type=media_type)
        check_content(part, f"{where}.input_audio")
        return part


class FileData(Struct, frozen=True):
    """A file as a `data:` URL."""

    file_data: str
    filename: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""


class FilePart(Struct, frozen=True, tag_field="type", tag="file"):
    """A file."""

    file: FileData

    def read(self, where: str) -> Part:
        """The file."""
        return read_file(self.file.file_data, self.file.filename, f"{where}.file.file_data")


ContentPart = TextPart | RefusalPart | ImagePart | AudioPart | FilePart


class InputText(TextPart, frozen=True, tag="input_text"):
    """Text."""


class OutputText(TextPart, frozen=True, tag="output_text"):
    """Text of an earlier answer."""


class InputImage(Struct, frozen=True, tag_field="type", tag="input_image"):
    """An image: a `data:` URL with base64, or an address of the web."""

    image_url: str

    def read(self, where: str) -> Part:
        """The image as a file."""
        return read_file(self.image_url, "", f"{where}.image_url")


class InputFile(Struct, frozen=True, tag_field="type", tag="input_file"):
    """A file: a `data:` URL with base64, or an address of the web."""

    file_data: str = ""
    file_url: str = ""
    filename: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""

    def read(self, where: str) -> Part:
        """The file."""
        field = "file_data" if self.file_data else "file_url"
        return read_file(self.file_data or self.file_url, self.filename, f"{where}.{field}")


InputPart = InputText | OutputText | RefusalPart | InputImage | InputFile


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
    """The reply and the attachments of a task, as Markdown."""
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
