"""The form of an agent on the desk."""

from typing import Any, ClassVar, cast

from django import forms
from django.forms.models import modelform_factory

from accounts.models import User
from agents.models import Agent, Session
from agents.web.forms import EDITABLE, AgentForm, NewAgentForm

STATUSES = [
    (Agent.Status.PUBLISHED, "Published: callers can ask it"),
    (Agent.Status.DRAFT, "Draft: closed to callers"),
]
ACCESSES = [
    (Agent.Access.PUBLIC, "Public: anybody signed in to this hub"),
    (Agent.Access.LIMITED, "Limited: you, and those you name"),
    (Agent.Access.PRIVATE, "Private: you alone"),
]
LONG = {"description": 8, "claude_md": 6, "personalization_prompt": 4}


class TextField(forms.CharField):
    """A long text as it was typed; line ends are plain, whatever the browser sends."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def to_python(self, value: Any) -> str:
        """The text with one character for each line end."""
        return str(super().to_python(value) or "").replace("\r\n", "\n")


class DeskForm(AgentForm):
    """The settings of an agent that is there."""

    status = forms.ChoiceField(choices=STATUSES, widget=forms.RadioSelect)
    access = forms.ChoiceField(
        choices=ACCESSES,
        initial=Agent.Access.PUBLIC,
        widget=forms.RadioSelect,
        help_text="Others do not see it either.",
    )

    class Meta(AgentForm.Meta):
        labels: ClassVar[dict[str, str]] = {
            "claude_md": "CLAUDE.md",
            "isolated": "Isolated",
            "caller_approvals": "Callers may approve",
            "daily_budget": "Daily budget",
            "caller_budget": "Daily budget of each caller",
            "concurrency_cap": "Open questions per caller",
            "wait_s": "Patience in seconds",
            "agent_style": "Answers to A2A 0.3",
            "max_body_bytes": "Longest request in bytes",
            "queue_max": "Questions that may wait",
            "queue_wait_s": "Seconds they wait",
        }
        field_classes: ClassVar[dict[str, type[forms.Field]]] = dict.fromkeys(LONG, TextField)
        widgets: ClassVar[dict[str, forms.Widget]] = {
            name: forms.Textarea(attrs={"rows": rows}) for name, rows in LONG.items()
        }


class NewDeskForm(NewAgentForm, DeskForm):
    """The same for an agent to be, and the session to publish."""

    class Meta(DeskForm.Meta):
        pass


def edit_form() -> type[DeskForm]:
    """The class of the form of an agent that is there."""
    return cast(type[DeskForm], modelform_factory(Agent, form=DeskForm, fields=EDITABLE))


def new_form(owner: User, session: Session | None) -> type[NewDeskForm]:
    """The class of the form of a new agent of this owner's; `session`: the only choice."""
    made = modelform_factory(Agent, form=NewDeskForm, fields=EDITABLE)
    return type("OwnersNewDeskForm", (made,), {"owner": owner, "only": session})
