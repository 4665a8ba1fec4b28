"""`claw admin …`: every listing that the staff read, and what others are told."""

import pytest

from lab.hub_process import HubProcess
from tests.clients.claw import Failed, claw
from tests.clients.shapes import ADMIN_TOKEN, Maybe, check, flag, iso, number, one_of, text

A_DAY = {"last24h": number, "last7d": number}
CALLS = {
    "/admin/stats/overview": {
        "users": {"total": number, "last7d": number, "last30d": number},
        "sessions": {"totalEver": number, "currentlyConnected": number, "startedLast24h": number},
        "events": A_DAY,
        "permissionRequests": {"pending": number, "resolvedLast24h": number},
        "agentDispatches": A_DAY | {"topAgents": [{"handle": text, "count": number}]},
        "fileUploads": {"last7d": number, "bytesStored": number},
        "webhookDeliveries": {"last24h": number, "succeededLast24h": number, "failedLast24h": number},
        "opMessages": {"last7d": number},
        "generatedAt": iso,
    },
    "/admin/stats/timeseries/events.total?window=24h": {
        "metric": text,
        "window": text,
        "bucket": one_of("hour", "day"),
        "points": [{"ts": iso, "count": number}],
        "generatedAt": iso,
    },
    "/admin/stats/users/active?limit=10": {
        "users": [{"userId": number, "githubLogin": text, "sessionCount": number, "eventsLast7d": number}],
        "limit": number,
    },
    "/admin/sessions?limit=50&offset=0": {
        "items": [{"id": text, "ownerLogin": text, "startedAt": iso, "connected": flag, "shareCount": number}],
        "total": number,
    },
    "/admin/shares?limit=100&offset=0": {"items": [{"id": number, "role": text}], "total": number},
    "/admin/agents": {"items": [{"id": number, "handle": text, "deletedAt": Maybe(iso)}], "total": number},
    "/admin/tokens?limit=200&active=all&kind=all": {"items": [ADMIN_TOKEN], "total": number, "returned": number},
    "/admin/users?limit=200": {
        "items": [{"id": number, "github_login": text, "is_admin": flag, "is_service": flag, "created_at": iso}],
        "total": number,
    },
}


def test_the_staff_read(clients_hub: HubProcess) -> None:
    root = claw(clients_hub, "root", admin=True)
    for path, shape in CALLS.items():
        check(root.call("GET", path), shape)
    with pytest.raises(Failed) as refused:
        claw(clients_hub, "alice").call("GET", "/admin/stats/overview")
    assert (refused.value.status, refused.value.code) == (403, "forbidden")
