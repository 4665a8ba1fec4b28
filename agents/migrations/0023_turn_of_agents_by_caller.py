from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False  # the index is built beside the writes
    dependencies = [
        ("agents", "0022_cost_limits"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("agent__isnull", False)),
                fields=["caller", "asked_at", "id"],
                name="turn_of_agents_by_caller",
            ),
        ),
    ]
