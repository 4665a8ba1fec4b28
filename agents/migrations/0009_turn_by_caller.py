from django.db import migrations, models

from kit.gentle_index import AddIndexGently


class Migration(migrations.Migration):

    atomic = False  # the index is built beside the writes
    dependencies = [
        ("agents", "0008_turn_names_its_message"),
    ]

    operations = [
        AddIndexGently(
            model_name="turn", index=models.Index(fields=["caller", "id"], name="turn_by_caller")
        ),
    ]
