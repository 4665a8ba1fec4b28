"""The upload of an artifact: a form with the parts `file` and, if wanted, `relative_path`."""

from io import BytesIO

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from gateway.agent_protocol.shapes import invalid, read_relative_path
from gateway.agent_protocol.store import NewFile
from kit.asgi import (
    BODY_WITHIN_S,
    MAX_BODY_BYTES,
    HttpRequest,
    RequestRefused,
    media_type_of,
    too_large,
    two_values,
)

FORM = "multipart/form-data"


async def read_upload(request: HttpRequest) -> NewFile:
    """The file of a request.

    Raises:
        RequestRefused: 400 (a header came twice), 408, 413, 415, 422.
        ClientLeft: the client disconnected.
    """
    content_type = request.headers.get("content-type", "")
    if request.contradicted:
        raise two_values(request.contradicted)
    if media_type_of(content_type) != FORM:
        raise RequestRefused(415, "unsupported_media_type", f"want Content-Type: {FORM}")
    request.check_length(MAX_BODY_BYTES)
    return parse_form(content_type, bytes(await request.read_body(MAX_BODY_BYTES, BODY_WITHIN_S)))


def parse_form(content_type: str, body: bytes) -> NewFile:
    """The file of a form.

    Raises:
        RequestRefused: 413, 422.
    """
    head = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(body))}
    try:
        fields, files = MultiPartParser(head, BytesIO(body), [MemoryFileUploadHandler()], "utf-8").parse()
    except RequestDataTooBig:
        raise too_large(MAX_BODY_BYTES) from None
    except (MultiPartParserError, SuspiciousOperation, ValueError, LookupError):
        raise invalid("the form cannot be read") from None
    file = files.get("file")
    if file is None:
        raise invalid("file: this part is missing")
    path = read_relative_path(str(fields.get("relative_path", "")))
    return NewFile(name=file.name or "", mime=file.content_type or "", data=file.read(), relative_path=path)
