"""The address of every page, with hostile words in every query."""

from urllib.parse import quote, urlencode

from lab.callers import Json
from tests.browser.hostile import Hostile
from tests.browser.pages import CONSENT


def paths(hostile: Hostile, found: Json) -> list[str]:
    """Every page of what was written, and hostile words in every address; the last is of no page."""
    agent, session = f"/desk/agents/{found['agent']}", f"/desk/sessions/{found['session']}"
    network, webhook = "/desk/network", f"/webhooks/{found['told']}"
    evaluations = f"/desk/evaluations/{found['set']}"

    def searching(path: str, *names: str) -> str:
        return f"{path}?{urlencode({name: hostile.text(200) for name in names})}"

    filters = ("q", "category", "location", "venue", "from", "key", "day", "tz")
    return [
        "/",
        searching("/agents", "q", "page"),
        f"/agents?q={found['handle']}",
        f"/agents/{found['handle']}",
        "/files",
        searching("/files", "page"),
        "/shares",
        searching("/shares", "page", "received"),
        *(f"/shared/{found['shared']}", f"/s/{found['link']}", f"/s/{quote(hostile.text(), safe='')}"),
        "/questions",
        searching("/questions", "q", "agent", "state", "page"),
        *("/questions/all", f"/questions/threads/{found['thread']}"),
        *(f"/questions/{found[ask]}" for ask in ("ask", "reported")),
        searching("/questions/all", "q", "agent", "state", "tz"),
        f"/demos/a2a/?agent={found['handle']}",
        searching("/demos/a2a/", "agent"),
        searching("/signin", "next"),
        CONSENT.replace("Notebook", quote(hostile.text(60))),
        searching("/device", "user_code"),
        "/join/0123456789abcdef0123456789abcdef",
        searching("/groups", "page"),
        f"/groups/{found['group']}",
        f"/groups/{found['group']}/erase",
        "/groups/join/0123456789abcdef0123456789abcdef",
        f"/staff/accounts/{found['group']}",
        searching("/staff/accounts/chief", "sessions", "tokens", "clients", "groups"),
        *("/invitations", "/account", "/account/erase", "/health", "/limits"),
        searching("/docs", "q"),
        *("/docs/errors", "/docs/api", "/docs/api/sessions"),
        searching("/desk", "agents", "sessions"),
        searching("/desk/alerts", "confirm"),
        f"/desk/failures?{urlencode({'agent': Hostile(hostile.vectors).text(200)})}",
        f"/desk/failures/{found['failure']}",
        searching("/desk/evaluations", "agent", "page"),
        searching(evaluations, "by", "page"),
        *(f"{evaluations}/settings", f"{evaluations}/questions/new", f"{evaluations}/questions/{found['saved']}"),
        f"{evaluations}/runs/{found['evaluation']}",
        "/desk/costs",
        searching("/desk/costs", "by", "days"),
        f"/desk/bulk?action=halt&agent={found['agent']}",
        f"/desk/publish?session={found['session']}",
        searching("/desk/publish", "session"),
        searching("/desk/remote", "name"),
        searching("/desk/connect", "name"),
        f"/desk/connect/{found['token']}",
        *(agent, f"{agent}/published", f"{agent}/delete", f"{agent}/remote", f"{agent}/audit", f"{agent}/ratings"),
        searching(f"{agent}/audit", "asker", "tz", "outcome", "q", "days", "page"),
        *(session, f"{session}/rows", f"{session}/files", f"{session}/delete"),
        searching(session, "before"),
        "/desk/team",
        searching("/desk/team", "of"),
        *("/desk/team/rules", "/desk/team/agents/alpha", f"/desk/team/proposals/{found['proposal']}"),
        *(network, f"{network}/venues", f"{network}/venues/new", f"{network}/venues/import"),
        searching(f"{network}/venues", *filters),
        *(f"{network}/{kind}s/{found[f'network_{kind}']}" for kind in ("venue", "key", "booking")),
        *(f"{network}/{kind}" for kind in ("keys", "bookings", "log", "rules")),
        searching(f"{network}/bookings", *filters),
        *(f"{network}/revenue?by={by}" for by in ("customer", "key", "venue", quote(hostile.text()))),
        searching(f"{network}/log", *filters),
        "/demos/agnt/",
        *("/webhooks", f"/webhooks/{found['webhook']}", f"/webhooks/{found['webhook']}/deliveries"),
        searching(webhook, "agent", "event"),
        f"{webhook}/deliveries/{found['delivery']}",
        f"/{quote(hostile.text())}",
    ]
