"""The connector as one file, `/connect.pyz`, and the page `/desk/connect`, which makes a token for an agent.

The page shows the commands to copy, and watches until the agent is connected.
"""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_safe

from accounts.error_responses import json_error
from accounts.models import Credential, User
from accounts.pages import owner_form, owner_json, owner_read
from accounts.pages.account import mcp_json
from accounts.quotas import QuotaExceeded
from accounts.tokens import mint_channel
from agents.models import Agent
from agents.models.session import live_connections
from clawbridge.connect import packing
from clawbridge.connect.presets import PRESETS, Preset
from kit.names import make_slug

NAME_CHARS = 64
NO_NAME = "Give it a name with at least one letter or digit, such as my-agent."
NOT_SHOWN = "ck_live_…"


@owner_form
def connect(request: HttpRequest, owner: User) -> HttpResponse:
    """A form for the name of an agent; a POST mints the agent's token and shows it once, with the commands to
    copy.
    """
    if request.method != "POST":
        return render(request, "desk/connect.html", {"name": request.GET.get("name", "")[:NAME_CHARS]})
    name = request.POST.get("name", "")
    slug = make_slug(name)
    if not slug or len(name) > NAME_CHARS:
        context = {"name": name[:NAME_CHARS], "error": NO_NAME}
        return render(request, "desk/connect.html", context, status=400)
    agent = request.headers.get("User-Agent", "")
    try:
        minted = mint_channel(owner, slug, user_agent=agent)
    except QuotaExceeded as over:
        return render(request, "desk/connect.html", {"name": name, "error": f"{over}."}, status=429)
    return _waiting(request, minted.credential, token=minted.token)


@owner_read
def waiting(request: HttpRequest, owner: User, credential_id: int) -> HttpResponse:
    """The page with the commands, without the token; the page says whether the agent has connected."""
    credential = _find_token(owner, credential_id)
    if credential is None:
        raise Http404
    return _waiting(request, credential)


@owner_json
def state(request: HttpRequest, owner: User, credential_id: int) -> HttpResponse:
    """`{"connected": bool}`; once the agent is connected also `name`, `href` and `action` of the next step."""
    credential = _find_token(owner, credential_id)
    if credential is None:
        return json_error(404, "not_found", "no such token, or it was revoked")
    arrival = _find_arrival(credential)
    return JsonResponse({"connected": arrival is not None, **(arrival or {})})


def _waiting(request: HttpRequest, credential: Credential, token: str = "") -> HttpResponse:
    text, hub = token or NOT_SHOWN, settings.PUBLIC_URL
    name = make_slug(credential.name) or "my-agent"
    fetch_command = f"curl -fO {hub}/connect.pyz"
    context = {
        "credential": credential,
        "token": token,
        # Not an option: other users of the machine can read a command line.
        "environment": f"export CLAWBRIDGE_TOKEN={text}",
        "checksum": packing.checksum(),
        "command": f"{fetch_command} && python3 connect.pyz --hub {hub} --name {name} --echo",
        "fetch_command": fetch_command,
        "presets": [
            {"id": f"preset-{key}", "title": preset.title, "command": _preset_command(name, key, preset)}
            for key, preset in PRESETS.items()
        ],
        "mcp": mcp_json(text),
        "arrival": _find_arrival(credential),
    }
    return render(request, "desk/connecting.html", context)


def _preset_command(name: str, key: str, preset: Preset) -> str:
    """The command that connects a coding agent under a routing name, run in the user's project directory."""
    access = "" if preset.read_only is not None else " --access write"
    address = f"--hub {settings.PUBLIC_URL} --name {name}"
    return f"python3 connect.pyz --preset {key} --directory .{access} {address}"


def _find_token(owner: User, credential_id: int) -> Credential | None:
    live = owner.credentials.live()
    found: Credential | None = live.filter(pk=credential_id, kind=Credential.Kind.CHANNEL).first()
    return found


def _find_arrival(credential: Credential) -> dict[str, str] | None:
    """The session that connected last with this token and is still connected: its name, and the next step."""
    live = live_connections().filter(credential=credential).select_related("session").order_by("-pk").first()
    if live is None:
        return None
    session = live.session
    name, agent = f"@{session.routing_name}", Agent.objects.kept().filter(session=session).first()
    if agent:
        return {"name": name, "href": reverse("desk-agent", args=[agent.pk]), "action": f"Edit @{agent.handle}"}
    href = f"{reverse('desk-publish')}?session={session.public_id}"
    return {"name": name, "href": href, "action": f"Publish {name}"}


@require_safe
def connect_pyz(request: HttpRequest) -> HttpResponse:
    """The connector in the version of this hub, as one file. `/desk/connect` shows the SHA-256 of the file."""
    etag = f'"{packing.checksum()}"'
    is_known = etag in request.headers.get("If-None-Match", "")
    answer = HttpResponse(b"" if is_known else packing.archive(), status=304 if is_known else 200)
    answer["Content-Type"] = "application/octet-stream"
    answer["Content-Disposition"] = f'attachment; filename="{packing.NAME}"'
    # The browser revalidates each time: a cache must not serve another file than the one whose SHA-256 the page
    # shows.
    answer["Cache-Control"] = "public, no-cache"
    answer["ETag"] = etag
    return answer


urlpatterns = [
    path("connect.pyz", connect_pyz, name="connect-pyz"),
    path("desk/connect", connect, name="desk-connect"),
    path("desk/connect/<int:credential_id>", waiting, name="desk-connecting"),
    path("desk/connect/<int:credential_id>/state", state, name="desk-connect-state"),
]
