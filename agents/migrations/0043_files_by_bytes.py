from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # the index is built beside the writes of the running hub

    dependencies = [("agents", "0042_files_of_callers")]

    operations = [AddIndexConcurrently(model_name="file", index=models.Index(condition=models.Q(('deleted_at', None)), fields=['uploader', 'sha256'], name='live_file_by_bytes'))]
