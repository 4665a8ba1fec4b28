"""The forms of a team: its rules, and one of its agents."""

from collections.abc import Sequence
from typing import Any

from django import forms

from agents.web.card_fields import LinesField
from gateway.enrolment import read_role
from gateway.frame_types import is_agent_name, is_target
from gateway.models import TeamAgent, TeamPolicy

MOST_VOTERS = 15
MOST_PEERS_NAMED = 100
MAX_FRAMES_KEPT_DAYS = 365
MAX_SESSION_HOURS = 24 * 365
HOUR_S = 3600
WANT_NAMES = "Want the names of agents, one on a line: small letters, digits and hyphens."
THRESHOLDS = [
    (TeamPolicy.Threshold.SIMPLE, "Simple: more than half of the voters"),
    (TeamPolicy.Threshold.SUPERMAJORITY, "Supermajority: two thirds of the voters"),
    (TeamPolicy.Threshold.UNANIMOUS, "Unanimous: all voters"),
]


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rules of a team."""

    members = LinesField(
        label="Voters", help_text=f"The agents that vote on proposals, one on a line; at most {MOST_VOTERS}."
    )
    threshold = forms.ChoiceField(label="Votes that decide", choices=THRESHOLDS, widget=forms.RadioSelect)
    breaks_ties = forms.BooleanField(
        label="An agent breaks ties", required=False, help_text="It is asked when the voters cannot decide."
    )
    steward = forms.CharField(label="Agent that breaks ties", required=False, max_length=64)
    queues_messages = forms.BooleanField(
        label="Keep messages for agents that are offline or busy",
        required=False,
        help_text="Without this, only messages with a ttl wait.",
    )
    stores_told = forms.BooleanField(label="Keep messages that want no response in the transcript", required=False)
    requires_signature = forms.BooleanField(
        label="Require signed frames", required=False, help_text="Frames without a valid signature are refused."
    )
    frames_kept_days = forms.IntegerField(
        label="Days to keep records of frames", min_value=1, max_value=MAX_FRAMES_KEPT_DAYS
    )
    session_hours = forms.IntegerField(
        label="Hours until a session expires",
        required=False,
        min_value=1,
        max_value=MAX_SESSION_HOURS,
        help_text="Counted from its last entry. Empty: it never expires.",
    )

    class Meta:
        model = TeamPolicy
        fields = (
            "members",
            "threshold",
            "breaks_ties",
            "steward",
            "queues_messages",
            "stores_told",
            "requires_signature",
            "frames_kept_days",
        )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        ttl_s = self.instance.session_ttl_s
        self.initial["session_hours"] = -(-ttl_s // HOUR_S) if ttl_s else None

    def clean_members(self) -> list[str]:
        """Names, each once."""
        names = list(dict.fromkeys(self.cleaned_data["members"]))
        if not names or len(names) > MOST_VOTERS or not all(map(is_agent_name, names)):
            raise forms.ValidationError(f"{WANT_NAMES} At least 1, at most {MOST_VOTERS}.")
        return names

    def clean(self) -> dict[str, Any]:
        """The agent that breaks ties is named, and does not vote."""
        super().clean()
        cleaned: dict[str, Any] = self.cleaned_data
        steward = cleaned.get("steward", "")
        if steward and not is_agent_name(steward):
            self.add_error("steward", "Want the name of an agent.")
        elif cleaned.get("breaks_ties") and not steward:
            self.add_error("steward", "Name the agent that breaks ties.")
        elif cleaned.get("breaks_ties") and steward in cleaned.get("members", ()):
            self.add_error("steward", "The agent that breaks ties cannot be a voter.")
        return cleaned

    def save_rules(self) -> None:
        """Write them; the team's row is made where there is none."""
        hours = self.cleaned_data["session_hours"]
        if "session_hours" in self.changed_data:
            self.instance.session_ttl_s = hours * HOUR_S if hours else None
        self.instance.save()


class TeamAgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """One agent of a team. The lists of peers count where their switch is on."""

    role = forms.CharField(
        label="Role", max_length=32, help_text="As discovery shows it, such as triad-member or researcher."
    )
    is_active = forms.BooleanField(
        label="Enrolled", required=False, help_text="An agent that is not enrolled takes no part in the team."
    )
    limits_sending = forms.BooleanField(label="May send to these agents only", required=False)
    may_send_to = LinesField(
        label="Sends to", required=False, help_text="One name on a line. None: it sends to no agent."
    )
    limits_hearing = forms.BooleanField(label="Takes messages of these agents only", required=False)
    may_hear_from = LinesField(
        label="Takes messages of", required=False, help_text="One name on a line. None: of no agent."
    )

    class Meta:
        model = TeamAgent
        fields = ("role", "is_active", "may_send_to", "may_hear_from")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["limits_sending"] = self.instance.may_send_to is not None
        self.initial["limits_hearing"] = self.instance.may_hear_from is not None

    def clean_role(self) -> str:
        """A role as discovery shows it; the other spelling is taken, too."""
        role = read_role(str(self.cleaned_data["role"]))
        if role is None:
            raise forms.ValidationError("Want small letters, digits and hyphens.")
        return role

    def clean_may_send_to(self) -> list[str]:
        """Names of agents."""
        return _check_peers(self.cleaned_data["may_send_to"])

    def clean_may_hear_from(self) -> list[str]:
        """Names of agents."""
        return _check_peers(self.cleaned_data["may_hear_from"])

    def choices(self) -> dict[str, Any]:
        """What was chosen, as the columns of the row."""
        chosen = self.cleaned_data
        return {
            "role": chosen["role"],
            "is_active": chosen["is_active"],
            "may_send_to": chosen["may_send_to"] if chosen["limits_sending"] else None,
            "may_hear_from": chosen["may_hear_from"] if chosen["limits_hearing"] else None,
        }


def _check_peers(names: Sequence[str]) -> list[str]:
    """The names, each once.

    Raises:
        ValidationError: one is no name, or there are too many.
    """
    found = list(dict.fromkeys(names))
    if len(found) > MOST_PEERS_NAMED or not all(map(is_target, found)):
        raise forms.ValidationError(f"{WANT_NAMES} At most {MOST_PEERS_NAMED}.")
    return found
