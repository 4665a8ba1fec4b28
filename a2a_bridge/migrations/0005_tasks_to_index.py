from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('a2a_bridge', '0004_threads'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='storedtask',
            index=models.Index(condition=models.Q(('is_indexed', False)), fields=['caller'], name='stored_task_to_index'),
        ),
    ]
