from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False  # the index is built beside the writes
    dependencies = [
        ("agents", "0005_remote"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("agent", None)), fields=["session", "asked_at"], name="turn_of_a_session"
            ),
        ),
    ]
