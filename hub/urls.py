"""Every address Django serves. The bridge's POST and the sockets are in hub/asgi.py."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import autodiscover_modules

from a2a_bridge.service.ask_spans import add_source
from accounts import urls as accounts
from accounts.admin_site import site
from agents.api.urls import channel_urlpatterns
from gateway.surface.api.messages import audit_urlpatterns
from hub import pages, palette
from hub.account_data import api as account_data_api
from hub.account_data import pages as account_data
from hub.ask_frames import find_gateway_frames
from hub.docs import pages as docs
from hub.staff_accounts import api as staff_accounts_api
from hub.staff_accounts import pages as staff_accounts

if settings.GATEWAY:
    add_source(find_gateway_frames)
autodiscover_modules("admin")  # registers models with the admin site; only programs that serve pages import this

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("agents.pages.urls")),
    path("", include(accounts.page_urlpatterns)),
    path("", include(account_data.page_urlpatterns)),
    path("", include("a2a_bridge.surface.urls")),
    path("", include("mcp_server.surface.metadata")),
    path("", include("operators.surface.pages")),
    path("", include("webhooks.surface.pages")),
    path("", include("evaluations.pages")),
    *([path("", include("gateway.surface.pages"))] if settings.GATEWAY else []),
    *([path("", include("agnt.pages.network"))] if settings.AGNT else []),
    path("health", pages.health, name="hub-health"),
    path("palette", palette.palette, name="palette"),
    path("limits", pages.limits, name="hub-limits"),
    path("", include(staff_accounts.urlpatterns)),
    path("", include("hub.connector")),
    path("docs", docs.docs, name="docs"),
    path("docs/api", docs.api, name="api"),
    path("docs/api/<slug:tag>", docs.api_section, name="api-section"),
    path("docs/<slug:name>", docs.docs_page, name="docs-page"),
    path("api/v1/schema", docs.schema, name="schema"),
    path("api/ws-docs/json", docs.sockets_json, name="sockets-json"),
    path("api/ws-docs/yaml", docs.sockets_yaml, name="sockets-yaml"),
    path("api/v1/", include("accounts.urls")),
    path("api/v1/", include(account_data_api.urlpatterns)),
    path("api/v1/", include(staff_accounts_api.urlpatterns)),
    path("api/v1/", include("agents.api.urls")),
    path("api/v1/", include("a2a_bridge.surface.share_api")),
    path("api/v1/", include("a2a_bridge.surface.threads_api")),
    path("api/v1/", include("gateway.surface.api.messages")),
    path("api/v1/", include("gateway.surface.api.team")),
    path("api/v1/", include("webhooks.surface.api")),
    path("api/v1/", include("a2a_bridge.surface.ask_api")),
    path("api/v1/", include("evaluations.api")),
    path("api/v1/", include("evaluations.run_api")),
    path("api/v1/", include("agnt.api.network")),
    *([path("", include("agnt.endpoint.webhooks"))] if settings.AGNT else []),
    path("api/channel/", include(channel_urlpatterns)),
    path("api/a2a/", include(audit_urlpatterns)),
    path("", include("accounts.scim_gate")),
    path("admin/", site.urls),
]

handler400 = "accounts.error_responses.bad_request"
handler403 = "accounts.error_responses.forbidden"
handler404 = "accounts.error_responses.not_found"
handler500 = "accounts.error_responses.server_error"
