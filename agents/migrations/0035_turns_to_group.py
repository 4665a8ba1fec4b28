from django.db import migrations, models

from kit.concurrent_index import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # the index is built beside the writes of the running hub

    dependencies = [("agents", "0034_failures")]

    operations = [AddIndexConcurrently(model_name="turn", index=models.Index(condition=models.Q(('agent__isnull', False), ('failure_group', None), ('reason__in', ('agent_failed', 'budget_exhausted', 'busy', 'caller_budget_spent', 'caller_cost_reached', 'channel_lost', 'concurrency', 'cost_limit_reached', 'group_budget_spent', 'not_delivered', 'not_recorded', 'offline', 'process_died', 'reply_lost', 'reply_too_large', 'shutdown', 'timeout'))), fields=['id'], name='turn_to_group'))]
