"""The moments of an ask that no row had, and the notes of callers about problems."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0036_turns_by_failure_group"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="delivered_ms",
            field=models.PositiveIntegerField(
                help_text="When the agent had the prompt, from the start of `latency_ms`; null: not known.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="first_piece_ms",
            field=models.PositiveIntegerField(
                help_text="When the first piece of a reply in pieces came, from the start of `latency_ms`.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="waited_ms",
            field=models.PositiveIntegerField(
                help_text="In line for a free agent, before `asked_at`; null: the ask did not wait.", null=True
            ),
        ),
        migrations.CreateModel(
            name="ProblemNote",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("text", models.TextField()),
                ("reported_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="problem_notes",
                        to="agents.agent",
                    ),
                ),
                (
                    "caller",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="problem_notes",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "turn",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="problem",
                        to="agents.turn",
                    ),
                ),
            ],
        ),
    ]
