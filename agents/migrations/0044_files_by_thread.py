from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # the index is built beside the writes of the running hub

    dependencies = [("agents", "0043_files_by_bytes")]

    operations = [AddIndexConcurrently(model_name="file", index=models.Index(condition=models.Q(('agent__isnull', False)), fields=['agent', 'context_id'], name='file_by_thread'))]
