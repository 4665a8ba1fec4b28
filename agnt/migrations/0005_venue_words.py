from django.db import migrations

from kit.full_text import KIND, NAME, PLACE, TEXT, AddFullText, FullText


class Migration(migrations.Migration):
    dependencies = [("agnt", "0004_labels_of_rules")]

    operations = [
        AddFullText(
            FullText(
                "agnt_venue",
                {
                    "name": NAME,
                    "slug": NAME,
                    "agent_name": NAME,
                    "area": PLACE,
                    "city": PLACE,
                    "category": KIND,
                    "tags": KIND,
                    "description": TEXT,
                },
                json=["tags"],
            )
        )
    ]
