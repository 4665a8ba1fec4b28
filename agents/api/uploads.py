"""A file in a multipart body, as operators and agents send it."""

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from rest_framework import serializers
from rest_framework.request import Request

from accounts.rest import Body
from agents.transcript.files import MAX_FILE_BYTES, Upload
from kit.asgi import RequestRefused

TOO_LARGE = f"a file has at most {MAX_FILE_BYTES} bytes"


class FileForm(Body):
    """The part `file`."""

    file = serializers.FileField()

    def validate_file(self, file: "UploadedFile[bytes]") -> "UploadedFile[bytes]":
        """Refuse what is over the cap; DRF refuses what is empty."""
        if (file.size or 0) > MAX_FILE_BYTES:
            raise RequestRefused(413, "payload_too_large", TOO_LARGE)
        return file


def read_form(form: type[FileForm], request: Request) -> dict[str, Any]:
    """The checked parts of a body, `file` as an `Upload`."""
    checked = form(data=request.data)
    checked.is_valid(raise_exception=True)
    file = checked.validated_data["file"]
    upload = Upload(filename=file.name, mime=file.content_type, data=file.read())
    return {**checked.validated_data, "file": upload}
