"""`/api/channel/files`: what an agent hands out and fetches (section 4.8 of the channel's wire)."""

import unicodedata
from typing import Any, TypedDict, cast
from urllib.parse import quote

from django.http import HttpResponseBase
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import NotFound
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import Identity, find_identity, presented
from accounts.models import Credential, User
from accounts.rest import caller_of
from agents.api.files import DOWNLOAD, OF_UPLOADS, AnyType, download
from agents.api.paging import read_query
from agents.api.uploads import FileForm, read_form
from agents.api.visible import get_session
from agents.models import File, Session
from agents.transcript import files
from agents.transcript.access import Role
from kit.describe import CHANNEL_TOKEN, ErrorBody, Uuid


class ChannelAuthentication(BaseAuthentication):
    """By Bearer alone: an agent has no cookie."""

    def authenticate(self, request: Request) -> tuple[User, Identity] | None:
        """The owner and the identity of the token; None without a live one, which is then a 401."""
        token = presented({"authorization": request.headers.get("Authorization", "")})
        identity = find_identity(token)
        if identity is None or identity.kind != Credential.Kind.CHANNEL:
            return None
        user = User.objects.filter(pk=identity.user_id).first()
        return (user, identity) if user else None

    def authenticate_header(self, request: Request) -> str:
        """Makes a missing caller a 401 instead of a 403."""
        return "Bearer"


def token_of(request: Request) -> Identity:
    """The channel token of an authenticated request."""
    return cast(Identity, request.auth)


class ChannelFile(TypedDict):
    """A file an agent handed out."""

    id: int
    filename: str
    mime: str
    size: int
    sha256: str
    sessionId: Uuid


class ChannelFileForm(FileForm):
    """The part `file`, and the session it goes to."""

    sessionId = serializers.UUIDField()


class OwnSession(serializers.Serializer[Any]):
    """The agent's own session."""

    sessionId = serializers.UUIDField()


class ChannelFiles(APIView):
    """`/api/channel/files`"""

    authentication_classes = [ChannelAuthentication]
    parser_classes = [MultiPartParser]

    @extend_schema(
        auth=[CHANNEL_TOKEN],
        request={"multipart/form-data": ChannelFileForm},
        responses={201: ChannelFile, 404: ErrorBody, **OF_UPLOADS},
    )
    def post(self, request: Request) -> Response:
        """Add a file to a session of the token's owner, or to one they may prompt; up to 10 MiB."""
        form = read_form(ChannelFileForm, request)
        session = get_session(request, form["sessionId"], at_least=Role.PROMPTER)
        file = files.store(session, caller_of(request), form["file"], File.Scope.REPLY)
        shown = {"id": file.pk, "filename": file.filename, "mime": file.mime, "size": file.size}
        return Response({**shown, "sha256": file.sha256, "sessionId": str(session.public_id)}, status=201)


class OneChannelFile(APIView):
    """`/api/channel/files/{id}`"""

    authentication_classes = [ChannelAuthentication]
    content_negotiation_class = AnyType

    @extend_schema(auth=[CHANNEL_TOKEN], parameters=[OwnSession], responses=DOWNLOAD)
    def get(self, request: Request, file_id: int) -> HttpResponseBase:
        """The bytes of a live file of the session that last came with this token."""
        wanted = read_query(OwnSession, request)["sessionId"]
        own = Session.objects.filter(public_id=wanted, credential_id=token_of(request).credential_id)
        file = File.objects.live().filter(pk=file_id, session__in=own, session__owner=caller_of(request)).first()
        slices = files.open_file(file) if file else None
        if file is None or slices is None:
            raise NotFound("no such file of this session")
        response = download(request, file, slices)
        response["x-clawborrator-file-name"] = _header_text(file.filename)
        response["x-clawborrator-file-mime"] = file.mime
        response["x-clawborrator-file-size"] = str(file.size)
        return response


urlpatterns = [
    path("files", ChannelFiles.as_view(), name="channel-files"),
    path("files/<int:file_id>", OneChannelFile.as_view(), name="channel-file"),
]


def _header_text(name: str) -> str:
    """The name as far as a header can hold it: the public channel reads the bytes as Latin-1, and decodes no more.

    Other characters are percent-encoded. `Content-Disposition` has every name as it is.
    """
    composed = unicodedata.normalize("NFC", name)  # macOS sends "u" and a diaeresis, which together are Latin-1
    return "".join(one if ord(one) < 256 else quote(one) for one in composed)
