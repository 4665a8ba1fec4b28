from django.db import migrations

from kit.full_text import KIND, NAME, PLACE, TEXT, AddFullText, FullText


class Migration(migrations.Migration):
    dependencies = [("agnt", "0005_venue_secrets")]

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
