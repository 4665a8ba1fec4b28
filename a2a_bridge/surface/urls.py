"""Addresses of the reference, of catalogs and keys, and of cards; `asgi` serves the POST beside the cards."""

from django.urls import path
from django.views.generic import RedirectView

from a2a_bridge.surface import catalog, pages, share_pages, thread_pages
from a2a_bridge.surface.ask_page import ask_page
from a2a_bridge.surface.cards import JWKS_PATH
from a2a_bridge.surface.documents import agent_base, agent_card, agent_usage, card_below
from a2a_bridge.wire.dialects.v1 import CORE
from a2a_bridge.wire.versions import INFO_PATH, RATING_PATH

BASE = "api/a2a/v1/agents/<str:owner>/<str:slug>"
WELL_KNOWN = "/.well-known/agent-card.json"
urlpatterns = [
    path("shares", share_pages.shares_page, name="shares"),
    path("shares/<int:share_id>/end", share_pages.end_share, name="end-share"),
    path("shared/<int:share_id>", share_pages.shared, name="shared"),
    path("s/<str:token>", share_pages.shared_link, name="shared-link"),
    path("questions", thread_pages.threads, name="questions"),
    path("questions/all", pages.my_questions, name="questions-all"),
    path("questions/threads/<str:thread_id>", thread_pages.thread, name="thread"),
    path("questions/threads/<str:thread_id>/change", thread_pages.change, name="thread-change"),
    path("questions/threads/<str:thread_id>/export", thread_pages.export, name="thread-export"),
    path("questions/<str:ask_id>", ask_page, name="question"),
    path("demos/a2a/", pages.reference, name="reference"),
    path("demos/a2a/agents", pages.found_agents, name="reference-agents"),
    path("demos/a2a", RedirectView.as_view(pattern_name="reference", query_string=True)),
    path("llms.txt", pages.llms, name="llms-txt"),
    path(".well-known/ai-catalog.json", catalog.ai_catalog, name="ai-catalog"),
    path(".well-known/ard.json", catalog.ard, name="ard"),
    path(JWKS_PATH.removeprefix("/"), catalog.jwks, name="jwks"),
    path(".well-known/agent-card.json", catalog.no_agent_card, name="no-agent-card"),
    path(INFO_PATH.removeprefix("/"), catalog.agent_info, name="agent-info"),
    path(RATING_PATH.removeprefix("/"), catalog.rating, name="rating-extension"),
    path(f"{BASE}/agent-card.json", agent_card, {"rendering": "merged"}, name="agent-card"),
    path(f"{BASE}/.well-known/agent.json", agent_card, {"rendering": "negotiated"}, name="legacy-agent-card"),
    path(f"{BASE}/usage.md", agent_usage, name="agent-usage"),
    path(BASE, agent_base, {"rendering": "negotiated"}, name="agent-base"),
    path(f"{BASE}/{CORE}", agent_base, {"rendering": "negotiated"}, name="core-base"),
    path(f"{BASE}/v1", agent_base, {"rendering": "strict"}, name="strict-base"),
    path(f"{BASE}{WELL_KNOWN}", agent_card, {"rendering": "negotiated"}, name="well-known-agent-card"),
    path(f"{BASE}/<path:given>{WELL_KNOWN}", card_below, name="card-below"),
]
