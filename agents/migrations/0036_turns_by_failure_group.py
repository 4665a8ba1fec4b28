from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # the index is built beside the writes of the running hub

    dependencies = [("agents", "0035_turns_to_group")]

    operations = [AddIndexConcurrently(model_name="turn", index=models.Index(condition=models.Q(('failure_group__isnull', False)), fields=['failure_group', 'id'], name='turn_by_failure_group'))]
