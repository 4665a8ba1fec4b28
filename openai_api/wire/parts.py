"""The parts of messages: text, and files as `data:` URLs or addresses of the web."""

import re
from typing import Annotated

from msgspec import Meta, Struct

from a2a_bridge.wire.dialects.reading import check_content, check_printable, invalid
from a2a_bridge.wire.dialects.v1.params import MAX_URL_CHARS
from agents.transcript.pieces import Part

MAX_NAME_CHARS = 255
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")


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
    """Where an image is: a `data:` URL with base64, or an address of the web."""

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
