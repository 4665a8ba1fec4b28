from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('agents', '0019_session_link'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='session',
            index=models.Index(condition=models.Q(('reachable_from__isnull', False)), fields=['reachable_from'], name='session_reachable_from'),
        ),
    ]
