import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0004_signing_key"),
    ]

    operations = [
        migrations.AddField(
            model_name="user",
            name="questions_blanked_to",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="user",
            name="questions_kept_days",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Days after which the text of questions to their agents is blanked; empty: the hub's own.",
                null=True,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(36500),
                ],
            ),
        ),
    ]
