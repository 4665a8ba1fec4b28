"""REST beside the agents' socket; hooks' events come by hub/asgi.py."""

from django.urls import path

from agents.links.channel.files import ChannelFiles, OneChannelFile

urlpatterns = [
    path("files", ChannelFiles.as_view(), name="channel-files"),
    path("files/<int:file_id>", OneChannelFile.as_view(), name="channel-file"),
]
