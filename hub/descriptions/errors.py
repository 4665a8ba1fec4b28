"""Derives the errors of an operation from its form, so that views need not list them."""

from typing import Any

Json = dict[str, Any]

SAFE_METHODS = frozenset({"get", "head", "options"})
TEXTS = {
    400: "What was sent has the wrong form; the message names the field.",
    401: "No live credential came with it.",
    403: "Not with this credential, or a cookie that came from another site.",
    404: "There is no such thing, or it is not yours to see.",
    406: "Answers are JSON, and Accept excludes it.",
    408: "The body did not come in time.",
    409: "Taken, or against what is there.",
    410: "It was there once.",
    413: "The body is over the limit.",
    415: "The body is not of a media type that is read here.",
    429: "Too often; Retry-After says when to come back.",
    500: "The hub's own fault; the message tells nothing of it.",
    501: "This hub does not do that.",
    502: "A server that the hub depends on did not answer correctly.",
    503: "Not now, or not set up.",
}


def likely_errors(path: str, method: str, operation: Json) -> set[int]:
    """The statuses that the parts of an OpenAPI operation bring with them."""
    found: set[int] = set()
    places = {parameter["in"] for parameter in operation.get("parameters", ())}
    if "requestBody" in operation:
        found |= {400, 413, 415}
    if "query" in places:
        found.add(400)
    if "path" in places:
        found.add(404)
    if operation.get("security"):
        found.add(401)
    if path.startswith("/api/") and method.lower() not in SAFE_METHODS:
        found.add(403)  # of a cookie that came from another site
    return found


def add_errors(operation: Json, statuses: set[int], schema: Json) -> None:
    """Answer these statuses too, unless the operation says already how; in order of status."""
    answers = operation["responses"]
    for status in statuses:
        answers.setdefault(str(status), {"content": {"application/json": {"schema": schema}}})
    for status, answer in answers.items():
        if not answer.get("description"):
            answer["description"] = TEXTS.get(int(status), "As asked.")
    operation["responses"] = dict(sorted(answers.items()))
