"""The words of alerts, on pages and in mails."""

from datetime import datetime

from agents import settings
from agents.core.failure_groups import describe_group
from agents.models import Alert
from agents.models.alert import AlertKind

MAX_SUBJECT_CHARS = 300
RAISED = {
    AlertKind.OFFLINE: "@{handle} is offline",
    AlertKind.BUDGET: "@{handle} has used {value} % of its budget for today",
    AlertKind.FAILURES: "@{handle} failed to answer {value} % of its questions in the last hour",
    AlertKind.NEW_FAILURE: "@{handle} fails in a new way",
}
PAST = {
    AlertKind.OFFLINE: "@{handle} was offline",
    AlertKind.BUDGET: "@{handle} had used {value} % of its budget for the day",
    AlertKind.FAILURES: "@{handle} failed to answer {value} % of its questions in an hour",
    AlertKind.NEW_FAILURE: "@{handle} failed in a new way",
}
ENDED = {
    AlertKind.OFFLINE: "@{handle} is no longer offline",
    AlertKind.BUDGET: "The budget alert of @{handle} has ended",
    AlertKind.FAILURES: "The failure alert of @{handle} has ended",
    AlertKind.NEW_FAILURE: "The new failure of @{handle} was resolved or ignored",
}
DETAILS = {
    AlertKind.OFFLINE: "The agent was last online at {since}. Your threshold: {threshold} min.",
    AlertKind.BUDGET: "The alert began at {since}. Your threshold: {threshold} %. Budgets restart at 00:00 UTC.",
    AlertKind.FAILURES: "The alert began at {since}. Your threshold: {threshold} % of 5 or more questions.",
    AlertKind.NEW_FAILURE: "It began at {since} and occurred {value} times. Your threshold: {threshold}.",
}
UNWATCHED = "An alert also ends when the agent is unpublished, halted or deleted, or the alert is switched off."


def describe_alert(alert: Alert) -> str:
    """The condition that an alert is about, in one sentence without a full stop."""
    texts = RAISED if alert.ended_at is None else PAST
    said = texts[AlertKind(alert.kind)].format(handle=alert.agent.handle, value=alert.value)
    return f"{said}: {describe_group(alert.failure_group).rstrip('.')}" if alert.failure_group else said


def write_mail(alert: Alert) -> tuple[str, str]:
    """Subject and text of the mail about a raised alert, or about its end if the alert has ended."""
    kind, handle = AlertKind(alert.kind), alert.agent.handle
    if alert.ended_at is None:
        said = describe_alert(alert)
        facts = {"since": _moment(alert.since), "threshold": alert.threshold, "value": alert.value}
        detail = DETAILS[kind].format(**facts)
    else:
        said = ENDED[kind].format(handle=handle)
        detail = f"The alert began at {_moment(alert.since)} and ended at {_moment(alert.ended_at)}. {UNWATCHED}"
    desk = f"{settings.PUBLIC_URL}/desk"
    failures = f"The failures: {desk}/failures/{alert.failure_group_id}\n" if alert.failure_group_id else ""
    links = f"{failures}The agent: {desk}/agents/{alert.agent_id}\nYour alerts: {desk}/alerts\n"
    return f"[Clawbridge] {said}"[:MAX_SUBJECT_CHARS], f"{said}.\n\n{detail}\n\n{links}"


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
