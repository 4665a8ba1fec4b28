"""Every address Django serves. The bridge's POST and the sockets are in hub/asgi.py."""

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path
from django.utils.module_loading import autodiscover_modules

from accounts.admin_site import site
from agents.api.urls import channel_urlpatterns
from hub import account_limits, health_page
from hub.docs import api_views as descriptions
from hub.docs import views as docs_views

autodiscover_modules("admin")  # registers tables with `site`; only programs that serve pages need this

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("agents.web.urls")),
    path("", include("accounts.page_urls")),
    path("", include("hub.account_data.pages")),
    path("", include("a2a_bridge.surface.urls")),
    path("", include("mcp_server.surface.metadata")),
    path("", include("operators.surface.pages")),
    path("", include("webhooks.surface.pages")),
    *([path("", include("gateway.surface.pages"))] if settings.GATEWAY else []),
    *([path("", include("agnt.web.network"))] if settings.AGNT else []),
    path("health", health_page.health, name="hub-health"),
    path("limits", account_limits.limits, name="hub-limits"),
    path("", include("hub.connector")),
    path("docs", docs_views.docs, name="docs"),
    path("docs/api", descriptions.api, name="api"),
    path("docs/api/<slug:tag>", descriptions.api_section, name="api-section"),
    path("docs/<slug:name>", docs_views.docs_page, name="docs-page"),
    path("api/v1/schema", descriptions.schema, name="schema"),
    path("api/ws-docs/json", descriptions.sockets_json, name="sockets-json"),
    path("api/ws-docs/yaml", descriptions.sockets_yaml, name="sockets-yaml"),
    path("api/v1/", include("accounts.urls")),
    path("api/v1/", include("hub.account_data.rest")),
    path("api/v1/", include("agents.api.urls")),
    path("api/v1/", include("gateway.surface.rest.team")),
    path("api/v1/", include("gateway.surface.rest.sessions")),
    path("api/v1/", include("gateway.surface.rest.letters")),
    path("api/v1/", include("gateway.surface.rest.proposals")),
    path("api/v1/", include("webhooks.surface.rest")),
    path("api/v1/", include("webhooks.surface.rest_deliveries")),
    path("api/v1/", include("agnt.api.urls")),
    *([path("", include("agnt.endpoint.webhooks"))] if settings.AGNT else []),
    path("api/channel/", include(channel_urlpatterns)),
    path("api/a2a/", include("gateway.surface.rest.frames")),
    path("admin/", site.urls),
]

handler400 = "accounts.rest.bad_request"
handler403 = "accounts.rest.forbidden"
handler404 = "accounts.rest.not_found"
handler500 = "accounts.rest.server_error"
