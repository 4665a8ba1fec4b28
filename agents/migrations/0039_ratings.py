"""Ratings of answers by their callers."""

import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0038_directory'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Rating',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_good', models.BooleanField(help_text='Thumb up; otherwise thumb down.')),
                ('note', models.TextField(blank=True, validators=[django.core.validators.MaxLengthValidator(1000)])),
                ('rated_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to='agents.agent')),
                ('caller', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to=settings.AUTH_USER_MODEL)),
                ('turn', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='rating', to='agents.turn')),
            ],
            options={
                'indexes': [models.Index(fields=['agent', 'rated_at'], name='rating_of_an_agent'), models.Index(fields=['agent', 'is_good'], name='rating_by_thumb')],
            },
        ),
    ]
