from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False  # the index is built beside the writes
    dependencies = [
        ("agents", "0008_turn_names_its_message"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="turn", index=models.Index(fields=["caller", "id"], name="turn_by_caller")
        ),
    ]
