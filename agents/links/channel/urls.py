"""REST beside the agents' socket."""

from django.urls import path

from agents.links.channel.events import post_event
from agents.links.channel.files import ChannelFiles, OneChannelFile

urlpatterns = [
    path("event", post_event, name="channel-event"),
    path("files", ChannelFiles.as_view(), name="channel-files"),
    path("files/<int:file_id>", OneChannelFile.as_view(), name="channel-file"),
]
