"""Pages of saved questions: the sets of an owner, one set with its results side by side, and its questions."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse

from accounts.models import User
from accounts.pages import owner_form, owner_page
from accounts.quotas import QuotaExceeded
from agents.models import Agent
from evaluations import limits
from evaluations.models import EvaluationRun, QuestionSet, SavedQuestion
from evaluations.service import reading, runs, sets
from evaluations.service.properties import BadExpectation
from evaluations.service.runs import CannotRun
from evaluations.service.sets import BadJudge, NameTaken, QuestionDraft
from kit.columns import make_bounded_field
from kit.filters import page_of

SETS_ON_A_PAGE = 25
RUNS_ON_A_PAGE = 10
QUESTIONS_ON_A_PAGE = 25  # with six results each
ANSWERS_ON_A_PAGE = 20
MAX_AGENTS_LISTED = 300
BY_VERSION, BY_RUN = "version", "run"


class SetForm(forms.ModelForm):  # type: ignore[type-arg]
    """The settings of a set."""

    class Meta:
        model = QuestionSet
        fields = ("name", "schedule", "runs_on_new_card", "daily_budget")
        formfield_callback = make_bounded_field
        widgets = {"schedule": forms.RadioSelect}


class NewSetForm(forms.Form):
    """The agent and the name of a new set."""

    agent = forms.CharField(max_length=161, widget=forms.TextInput(attrs={"list": "own-agents"}))
    name = forms.CharField(max_length=80, help_text="Such as “Opening hours”.")

    def __init__(self, owner: User, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._owner = owner

    def clean_agent(self) -> Agent:
        """The agent of a handle, which is one of the owner's."""
        handle = self.cleaned_data["agent"].strip().removeprefix("@").lower()
        own = Agent.objects.kept().owned_by(self._owner)
        agent: Agent | None = own.filter(handle_key=handle).first() if handle.isprintable() else None
        if agent is None:
            raise forms.ValidationError("You have no agent with this handle.")
        return agent


class QuestionForm(forms.ModelForm):  # type: ignore[type-arg]
    """One question, with what is expected of the answer."""

    class Meta:
        model = SavedQuestion
        fields = ("text", "expected", "expectation", "judge")
        widgets = {
            "text": forms.Textarea(attrs={"rows": 3}),
            "expected": forms.RadioSelect,
            "expectation": forms.Textarea(attrs={"rows": 4}),
        }

    def __init__(self, owner: User, agent: Agent, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._owner = owner
        self._agent = agent
        self.fields["expectation"].strip = False  # type: ignore[attr-defined]

    @property
    def draft(self) -> QuestionDraft:
        """The question as it was written."""
        read = self.cleaned_data
        judge = read["judge"].strip().removeprefix("@")
        return QuestionDraft(
            text=_lines(read["text"]),
            expected=read["expected"],
            expectation=_lines(read["expectation"]),
            judge=judge,
        )

    def clean(self) -> dict[str, Any]:
        """Check the expectation, and the judge."""
        super().clean()
        cleaned: dict[str, Any] = self.cleaned_data
        if not self.errors:
            try:
                sets.check_question(self._owner, self._agent, self.draft)
            except BadExpectation as bad:
                self.add_error("expectation", _sentence(bad))
            except BadJudge as bad:
                self.add_error("judge", _sentence(bad))
        return cleaned

    def _post_clean(self) -> None:
        """Leave the row as it is: `service.sets` writes it."""


@owner_form
def evaluations(request: HttpRequest, owner: User) -> HttpResponse:
    """`/desk/evaluations`: the sets of an owner's agents; a POST makes one. `?agent=` chooses the agent."""
    posted = request.POST if request.method == "POST" else None
    form = NewSetForm(owner, posted, initial={"agent": _chosen(request)})
    if request.method == "POST" and form.is_valid():
        try:
            made = sets.create_set(owner, form.cleaned_data["agent"], {"name": form.cleaned_data["name"]})
            return HttpResponseRedirect(reverse("desk-question-new", args=[made.pk]))
        except NameTaken as taken:
            form.add_error("name", _sentence(taken))
        except QuotaExceeded as full:
            form.add_error(None, _sentence(full))
    own = QuestionSet.objects.owned_by(owner).select_related("agent").order_by("agent__handle_key", "name", "pk")
    page = page_of(request, own, SETS_ON_A_PAGE)
    ids = [one.pk for one in page]
    counts, latest = reading.count_questions(ids), reading.latest_runs(ids)
    handles = Agent.objects.kept().owned_by(owner).order_by("handle_key").values_list("handle", flat=True)
    context = {
        "form": form,
        "page": page,
        "rows": [(one, counts.get(one.pk, 0), latest.get(one.pk)) for one in page],
        "handles": handles[:MAX_AGENTS_LISTED],
    }
    return render(request, "evaluations/list.html", context, status=400 if form.errors else 200)


@owner_form
def evaluation(request: HttpRequest, owner: User, set_id: int) -> HttpResponse:
    """`/desk/evaluations/{id}`: a set with its results side by side. A POST runs it, or stops its run.

    `?by=run`: the latest runs instead of the newest run of each version; `?page=`: of the list of runs;
    `?questions=`: the page of questions.
    """
    question_set = _get_own_set(set_id, owner)
    if request.method == "POST":
        _act(request, question_set)
        return HttpResponseRedirect(reverse("desk-evaluation", args=[set_id]))
    by = BY_RUN if request.GET.get("by") == BY_RUN else BY_VERSION
    found = reading.runs_of(question_set) if by == BY_RUN else reading.newest_of_each_version(question_set)
    compared = list(found[: reading.SIDE_BY_SIDE])
    page = page_of(request, reading.runs_of(question_set), RUNS_ON_A_PAGE)
    questions = page_of(request, reading.questions_of(question_set), QUESTIONS_ON_A_PAGE, "questions")
    last = reading.latest_runs([set_id]).get(set_id)
    chosen = "by=run" if by == BY_RUN else ""
    context = {
        "set": question_set,
        "asks_today": runs.asks_today(question_set),
        "lines": reading.compare_runs(list(questions), compared),
        "questions": questions,
        "chosen": chosen,
        "keep": "&".join(filter(None, [chosen, f"questions={questions.number}"])),
        "compared": reading.show_runs(compared),
        "open": last if last and last.run.ended_at is None else None,
        "runs": reading.show_runs(list(page)),
        "page": page,
        "by": by,
        "most": limits.QUESTIONS.most,
    }
    return render(request, "evaluations/set.html", context)


@owner_form
def settings_of_set(request: HttpRequest, owner: User, set_id: int) -> HttpResponse:
    """`/desk/evaluations/{id}/settings`: the settings of a set. A POST with `delete` deletes the set."""
    question_set = _get_own_set(set_id, owner)
    if request.method == "POST" and "delete" in request.POST:
        question_set.delete()
        messages.success(request, f"The set “{question_set.name}” is deleted.")
        return HttpResponseRedirect(reverse("desk-evaluations"))
    form = SetForm(request.POST if request.method == "POST" else None, instance=_get_own_set(set_id, owner))
    if request.method == "POST" and form.is_valid():
        try:
            sets.revise_set(question_set, {name: form.cleaned_data[name] for name in sets.SETTINGS})
            messages.success(request, "The settings are saved.")
            return HttpResponseRedirect(reverse("desk-evaluation", args=[set_id]))
        except NameTaken as taken:
            form.add_error("name", _sentence(taken))
    status = 400 if form.errors else 200
    return render(request, "evaluations/settings.html", {"set": question_set, "form": form}, status=status)


@owner_form
def question(request: HttpRequest, owner: User, set_id: int, question_id: int | None = None) -> HttpResponse:
    """`/desk/evaluations/{id}/questions/{id}` and `…/new`: one question. A POST with `delete` deletes it."""
    question_set = _get_own_set(set_id, owner)
    known = _get_question(question_set, question_id) if question_id is not None else None
    if known is not None and request.method == "POST" and "delete" in request.POST:
        sets.delete_question(known)
        messages.success(request, "The question is deleted, with its results.")
        return HttpResponseRedirect(reverse("desk-evaluation", args=[set_id]))
    form = QuestionForm(
        owner, question_set.agent, request.POST if request.method == "POST" else None, instance=known
    )
    if request.method == "POST" and form.is_valid():
        try:
            _save_question(question_set, known, form.draft)
        except QuotaExceeded as full:
            form.add_error(None, _sentence(full))
        else:
            goes_on = known is None and "another" in request.POST
            messages.success(request, "The question is saved.")
            name = "desk-question-new" if goes_on else "desk-evaluation"
            return HttpResponseRedirect(reverse(name, args=[set_id]))
    context = {"set": question_set, "question": known, "form": form, "count": question_set.questions.count()}
    return render(request, "evaluations/question.html", context, status=400 if form.errors else 200)


@owner_page
def run(request: HttpRequest, owner: User, set_id: int, run_id: int) -> HttpResponse:
    """`/desk/evaluations/{id}/runs/{id}`: one run with its answers, 20 a page."""
    question_set = _get_own_set(set_id, owner)
    found = reading.runs_of(question_set).filter(pk=run_id).first()
    if found is None:
        raise Http404
    context = {
        "set": question_set,
        "shown": reading.show_runs([found])[0],
        "page": page_of(request, reading.results_of(found), ANSWERS_ON_A_PAGE),
    }
    return render(request, "evaluations/run.html", context)


def _act(request: HttpRequest, question_set: QuestionSet) -> None:
    action = request.POST.get("action")
    if action == "run":
        try:
            runs.start_run(question_set, EvaluationRun.Cause.BY_HAND)
        except CannotRun as refused:
            messages.error(request, f"Not started: {refused}.")
    elif action == "stop":
        for one in reading.runs_of(question_set).filter(ended_at=None):
            runs.stop_run(one)
            messages.success(request, "The run is stopped.")


@transaction.atomic
def _save_question(question_set: QuestionSet, known: SavedQuestion | None, draft: QuestionDraft) -> None:
    if known is None:
        sets.add_question(question_set, draft)
    else:
        sets.revise_question(known, draft)


def _get_own_set(set_id: int, owner: User) -> QuestionSet:
    own = QuestionSet.objects.owned_by(owner).select_related("agent__owner", "agent__session")
    found: QuestionSet | None = own.filter(pk=set_id).first()
    if found is None:
        raise Http404
    return found


def _get_question(question_set: QuestionSet, question_id: int) -> SavedQuestion:
    found = question_set.questions.filter(pk=question_id).first()
    if found is None:
        raise Http404
    return found


def _chosen(request: HttpRequest) -> str:
    handle = request.GET.get("agent", "")[:161]
    return handle if handle.isprintable() else ""


def _lines(text: str) -> str:
    """The text with the line ends of agents: browsers send others."""
    return text.replace("\r\n", "\n")


def _sentence(said: Exception) -> str:
    text = str(said)
    return f"{text[:1].upper()}{text[1:]}."


urlpatterns = [
    path("desk/evaluations", evaluations, name="desk-evaluations"),
    path("desk/evaluations/<int:set_id>", evaluation, name="desk-evaluation"),
    path("desk/evaluations/<int:set_id>/settings", settings_of_set, name="desk-evaluation-settings"),
    path("desk/evaluations/<int:set_id>/questions/new", question, name="desk-question-new"),
    path("desk/evaluations/<int:set_id>/questions/<int:question_id>", question, name="desk-question"),
    path("desk/evaluations/<int:set_id>/runs/<int:run_id>", run, name="desk-evaluation-run"),
]
