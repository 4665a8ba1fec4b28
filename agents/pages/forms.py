"""The forms for an agent, on the desk and in the admin."""

from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any, ClassVar, cast

from django import forms
from django.db.models import QuerySet
from django.utils.timesince import timesince

from accounts.models import User
from agents.core import directory
from agents.core.agent_moves import find_destinations
from agents.core.card_settings import EDITABLE, MAX_PROMPT_CHARS, MAX_PROMPTS, TAGS
from agents.core.directory import UnknownLogin, get_users_by_login, load_caller_budgets, load_granted_logins
from agents.models import Agent, Session
from agents.models.agent import MAX_BUDGET, MAX_LIMIT_USD, MAX_NAMED_CALLERS
from agents.models.choices import CHANNEL_LINK
from agents.models.session import SEEN_AT, online_sessions
from agents.pages.card_fields import ModesField, SkillsField
from kit.columns import make_form_field
from kit.list_fields import LinesField, NameLines
from kit.money import DECIMAL_PLACES, decimal_usd, to_microusd

STATUSES = [
    (Agent.Status.PUBLISHED, "Published: callers can ask it"),
    (Agent.Status.DRAFT, "Draft: closed to callers"),
]
ACCESSES = [
    (Agent.Access.PUBLIC, "Public: any signed-in user of this hub"),
    (Agent.Access.LIMITED, "Limited: you, and those you name"),
    (Agent.Access.PRIVATE, "Private: you alone"),
]
TASK_STORES = [
    ("", "Where the hub keeps them"),
    (Agent.TaskStore.MEMORY, "In memory"),
    (Agent.TaskStore.JOURNAL, "In the database"),
]
MAX_CHOICES = 200
LONG_TEXT_ROWS = {"description": 8, "claude_md": 6, "personalization_prompt": 4}


class LongTextField(forms.CharField):
    """A long text as the owner typed it; each line end becomes one newline character."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def to_python(self, value: Any) -> str:
        """The text, with each CRLF replaced by one character."""
        return str(super().to_python(value) or "").replace("\r\n", "\n")


class UsdField(forms.DecimalField):
    """An amount in US dollars, stored in millionths; an empty field is None."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            min_value=0,
            max_value=MAX_LIMIT_USD,
            max_digits=13,
            decimal_places=DECIMAL_PLACES,
            **options,
        )

    def prepare_value(self, value: Any) -> Any:
        """The stored amount in dollars; a text that the owner typed stays unchanged."""
        return decimal_usd(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        """The amount in millionths."""
        usd = super().clean(value)
        return None if usd is None else to_microusd(usd)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """True if the owner typed another amount."""
        return super().has_changed(None if initial is None else Decimal(decimal_usd(initial)), data)


class LoginsField(LinesField):
    """A field for users, named by login."""

    def clean(self, value: Any) -> list[User]:
        """The users of these logins."""
        return users_of(super().clean(value))


class LoginField(forms.CharField):
    """The field for a user, named by login; `excluded` is the user who fills in the form."""

    def __init__(self, *, excluded: User, **options: Any) -> None:
        super().__init__(**options)
        self.excluded = excluded

    def clean(self, value: Any) -> User:
        """The user of this login."""
        [user] = users_of([super().clean(value)])
        if user.pk == self.excluded.pk:
            raise forms.ValidationError("This is you.")
        return user


class CallerBudgetsField(LinesField):
    """A field for daily budgets of callers: a login and a number on each line."""

    def clean(self, value: Any) -> Any:
        """The budgets by user; the last line of a login counts."""
        numbers = dict(_login_and_number(line) for line in super().clean(value))
        return {user: numbers[user.login.lower()] for user in users_of(numbers)}


def _login_and_number(line: str) -> tuple[str, int]:
    login, _, number = line.partition(" ")
    number = number.strip()
    if not (number.isascii() and number.isdecimal() and len(number) <= 6 and int(number) <= MAX_BUDGET):
        raise forms.ValidationError(f"Want a login, a space and a number from 0 to {MAX_BUDGET} on each line.")
    return login.lower(), int(number)


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    """The settings of an agent."""

    status = make_form_field(Agent, "status", forms.ChoiceField, choices=STATUSES, widget=forms.RadioSelect)
    access = make_form_field(
        Agent,
        "access",
        forms.ChoiceField,
        choices=ACCESSES,
        initial=Agent.Access.PUBLIC,
        widget=forms.RadioSelect,
    )
    daily_limit_microusd = make_form_field(Agent, "daily_limit_microusd", UsdField)
    caller_limit_microusd = make_form_field(Agent, "caller_limit_microusd", UsdField)
    suggested_prompts = make_form_field(
        Agent, "suggested_prompts", LinesField, most=MAX_PROMPTS, most_chars=MAX_PROMPT_CHARS
    )
    tags = make_form_field(Agent, "tags", NameLines, rule=TAGS)
    task_store = make_form_field(Agent, "task_store", forms.ChoiceField, choices=TASK_STORES)
    skills = make_form_field(Agent, "skills", SkillsField)
    input_modes = make_form_field(Agent, "input_modes", ModesField)
    output_modes = make_form_field(Agent, "output_modes", ModesField)
    allowed_logins = LoginsField(
        most=MAX_NAMED_CALLERS,
        required=False,
        help_text="Users and groups whom it answers while access is limited, one login on a line.",
    )
    caller_budgets = CallerBudgetsField(
        most=MAX_NAMED_CALLERS,
        required=False,
        help_text="Callers with a daily budget of their own: a login, a space and a number on each line. The"
        " members of a group spend its budget together.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            budgets = load_caller_budgets([self.instance.pk])[self.instance.pk]
            self.fields["caller_budgets"].initial = [f"{login} {budget}" for login, budget in budgets.items()]
            self.fields["allowed_logins"].initial = load_granted_logins([self.instance.pk])[self.instance.pk]

    def settings(self) -> dict[str, Any]:
        """The values of the form as arguments of `directory.publish_agent`."""
        chosen = self.cleaned_data
        details = {field: chosen[field] for field in EDITABLE}
        return {"details": details, "allowed": chosen["allowed_logins"], "budgets": chosen["caller_budgets"]}

    class Meta:
        model = Agent
        fields = EDITABLE
        field_classes: ClassVar[dict[str, type[forms.Field]]] = dict.fromkeys(LONG_TEXT_ROWS, LongTextField)
        widgets: ClassVar[dict[str, forms.Widget]] = {
            name: forms.Textarea(attrs={"rows": rows}) for name, rows in LONG_TEXT_ROWS.items()
        }


class SessionChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A choice of sessions, shown by name, host and folder, and whether they are online."""

    online: Collection[int] = ()

    def offer(self, sessions: QuerySet[Session]) -> None:
        """Offer these sessions as choices, the last seen first."""
        newest = list(sessions.order_by(SEEN_AT.desc()).values_list("pk", flat=True)[:MAX_CHOICES])
        self.queryset = sessions.filter(pk__in=newest).order_by(SEEN_AT.desc())
        self.online = online_sessions(set(newest))

    def label_from_instance(self, obj: Any) -> str:
        """A label that distinguishes two sessions of one name."""
        place = " ".join(part for part in (obj.host, obj.cwd) if part)
        seen = "online" if obj.pk in self.online else f"last seen {timesince(obj.last_seen_at)} ago"
        return f"@{obj.routing_name} ({place or obj.public_id}), {seen}"


class PresentAgentForm(AgentForm):
    """The settings of an existing agent; for an agent of a program also its session."""

    session = SessionChoice(
        queryset=None,
        required=False,
        empty_label=None,
        label="Session",
        help_text="The program that answers. Another one of yours is offered here once it has connected, unless it"
        " is published. The handle, the settings and the audit stay; open questions have to end first.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agent = self.instance
        if agent.session.link != CHANNEL_LINK:
            del self.fields["session"]
            return
        choice = cast(SessionChoice, self.fields["session"])
        choice.offer(find_destinations(agent) | Session.objects.filter(pk=agent.session_id))
        choice.initial = agent.session_id

    def revise(self) -> Agent | None:
        """Write only the changed fields; returns None if the agent was deleted meanwhile.

        Raises:
            NotMovable: the agent cannot move to the chosen session now; nothing was written.
        """
        chosen, changed = self.cleaned_data, self.changed_data
        details = {field: chosen[field] for field in EDITABLE if field in changed}
        allowed = chosen["allowed_logins"] if "allowed_logins" in changed else None
        budgets = chosen["caller_budgets"] if "caller_budgets" in changed else None
        return directory.revise_agent(self.instance.pk, details, allowed, budgets, chosen.get("session"))


class NewAgentForm(AgentForm):
    """The session to publish, and the settings of its agent; `make_new_agent_form` sets `owner` and `only`."""

    owner: ClassVar[User]
    only: ClassVar[Session | None] = None

    session = SessionChoice(queryset=None, help_text="Your sessions that are not published yet.")
    slug = forms.CharField(
        required=False,
        max_length=64,
        help_text="The handle is your login, a slash and this, for good. Empty: as the session.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        published = Agent.objects.kept().values("session_id")
        own = Session.objects.owned_by(self.owner).kept().exclude(pk__in=published)
        choice = cast(SessionChoice, self.fields["session"])
        choice.offer(own.filter(pk=self.only.pk) if self.only else own)
        choice.empty_label = None if self.only else choice.empty_label

    def clean(self) -> dict[str, Any]:
        """Report the errors of slug and handle that publishing would raise."""
        super().clean()
        cleaned: dict[str, Any] = self.cleaned_data
        if "session" in cleaned and "slug" in cleaned:
            try:
                directory.choose_handle(self.owner, cleaned["session"], cleaned["slug"] or None)
            except directory.BadSlug as bad:
                self.add_error("slug", str(bad))
            except directory.HandleTaken as taken:
                self.add_error("slug", f"{taken}.")
        return cleaned

    def publish(self) -> directory.Published:
        """Publish the agent.

        Raises:
            directory.HandleTaken, QuotaExceeded: nothing was written.
        """
        chosen = self.cleaned_data
        return directory.publish_agent(
            self.owner, chosen["session"], **self.settings(), slug=chosen["slug"] or None
        )


def make_new_agent_form(owner: User, only: Session | None = None) -> type[NewAgentForm]:
    """The form class for a new agent of this owner; `only`: the only session to choose from."""
    return type("OwnersNewAgentForm", (NewAgentForm,), {"owner": owner, "only": only})


def users_of(logins: Iterable[str]) -> list[User]:
    """The users of these logins; errors are those of a form field.

    Raises:
        ValidationError: a login belongs to no user.
    """
    try:
        return get_users_by_login(logins)
    except UnknownLogin as unknown:
        raise forms.ValidationError(f"{unknown}.") from None
