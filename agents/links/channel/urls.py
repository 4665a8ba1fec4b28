"""REST beside the agents' socket."""

from django.urls import path

from agents.links.channel.events import post_event

urlpatterns = [path("event", post_event, name="channel-event")]
