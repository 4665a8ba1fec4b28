"""The requests and responses of asks, as they were sent but without secrets."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("a2a_bridge", "0006_answer_shares"),
        ("agents", "0037_ask_page"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RecordedExchange",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                (
                    "chat_id",
                    models.CharField(help_text="Of the turn that the request began or joined.", max_length=64),
                ),
                (
                    "protocol",
                    models.CharField(
                        help_text="The version and binding, such as A2A 1.0 over JSON-RPC.", max_length=64
                    ),
                ),
                ("method", models.CharField(help_text="Of HTTP.", max_length=8)),
                ("path", models.TextField(help_text="Without the query.")),
                (
                    "request_headers",
                    models.TextField(help_text="JSON: those of a list of names that hold no secrets."),
                ),
                ("request_body", models.TextField(blank=True)),
                ("request_bytes", models.PositiveIntegerField()),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="Of HTTP; 0: the client left before a response began."
                    ),
                ),
                (
                    "response_headers",
                    models.TextField(help_text="JSON: those of a list of names that hold no secrets."),
                ),
                (
                    "response_body",
                    models.TextField(blank=True, help_text="Of a long stream the first and the last frames."),
                ),
                ("response_bytes", models.PositiveIntegerField()),
                (
                    "frames",
                    models.PositiveIntegerField(default=0, help_text="Of a stream; 0: the response is no stream."),
                ),
                ("received_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recorded_exchanges",
                        to="agents.agent",
                    ),
                ),
                (
                    "caller",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recorded_exchanges",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["chat_id"], name="exchange_by_ask"),
                    models.Index(fields=["caller", "-id"], name="exchange_by_caller"),
                    models.Index(fields=["received_at"], name="exchange_by_age"),
                ],
            },
        ),
    ]
