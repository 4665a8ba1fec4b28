from django.db import migrations

from kit.full_text import KIND, NAME, TEXT, AddFullText, FullText


class Migration(migrations.Migration):
    dependencies = [("agents", "0031_labels_of_agents")]

    operations = [
        AddFullText(
            FullText(
                "agents_agent",
                {"handle": NAME, "name": NAME, "tagline": KIND, "skills": KIND, "description": TEXT},
                json=["skills"],
            )
        )
    ]
