"""Sets of questions, their questions, runs and results in the admin; nothing is changed by hand."""

from django.contrib import admin

from accounts.admin_site import OwnerScopedAdmin, site
from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet, SavedQuestion


@admin.register(QuestionSet, site=site)
class QuestionSetAdmin(OwnerScopedAdmin):
    """Sets of saved questions. Deleting a row deletes its questions and runs."""

    owner_lookup = "agent__owner"
    writes = ("delete",)
    list_display = ("name", "agent", "schedule", "runs_on_new_card", "daily_budget", "due_at", "created_at")
    list_select_related = ("agent",)
    list_filter = ("schedule", "runs_on_new_card")
    search_fields = ("name", "agent__handle")
    fields = (*list_display, "spent_on", "asks_spent")
    ordering = ("-pk",)


@admin.register(SavedQuestion, site=site)
class SavedQuestionAdmin(OwnerScopedAdmin):
    """The questions of sets."""

    owner_lookup = "question_set__agent__owner"
    list_display = ("text", "question_set", "expected", "judge", "revised_at")
    list_select_related = ("question_set",)
    list_filter = ("expected",)
    search_fields = ("text", "question_set__name")
    fields = ("question_set", "position", "text", "expected", "expectation", "judge", "revised_at")
    ordering = ("-pk",)


@admin.register(EvaluationRun, site=site)
class EvaluationRunAdmin(OwnerScopedAdmin):
    """The runs of sets."""

    owner_lookup = "question_set__agent__owner"
    list_display = ("question_set", "cause", "card_version", "started_at", "ended_at", "is_stopped")
    list_select_related = ("question_set",)
    list_filter = ("cause", "started_at")
    search_fields = ("question_set__name",)
    fields = (*list_display, "card_digest")
    ordering = ("-pk",)


@admin.register(EvaluationResult, site=site)
class EvaluationResultAdmin(OwnerScopedAdmin):
    """What came of each question in a run."""

    owner_lookup = "run__question_set__agent__owner"
    list_display = ("question", "run", "state", "detail", "ended_at")
    list_select_related = ("question", "run")
    list_filter = ("state", "ended_at")
    search_fields = ("asked", "judged")
    fields = ("question", "run", "state", "asked", "judged", "answer", "detail", "attempts", "ended_at")
    ordering = ("-pk",)
