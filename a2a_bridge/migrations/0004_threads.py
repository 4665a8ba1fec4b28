import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from kit.full_text import PLACE, TEXT, AddFullText, FullText


class Migration(migrations.Migration):

    dependencies = [
        ('a2a_bridge', '0003_push'),
        ('agents', '0032_agent_words'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='storedtask',
            name='is_indexed',
            field=models.BooleanField(db_default=False, default=False, help_text='Its thread has the words of its last snapshot.'),
        ),
        migrations.AddField(
            model_name='storedtask',
            name='is_message',
            field=models.BooleanField(db_default=False, default=False, help_text='Its caller got the answer as a message, and no task.'),
        ),
        migrations.CreateModel(
            name='Thread',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, help_text='Its id in addresses.', unique=True)),
                ('context_id', models.TextField(help_text='The A2A context that its tasks have in common.')),
                ('title', models.CharField(max_length=200)),
                ('began_at', models.DateTimeField(help_text='When its first question was asked.')),
                ('last_asked_at', models.DateTimeField(help_text='When its last question was asked.')),
                ('archived_at', models.DateTimeField(help_text='When its caller took it out of the list.', null=True)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='threads', to='agents.agent')),
                ('caller', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='threads', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('caller', 'agent', 'context_id'), name='one_thread_per_context')],
                'indexes': [
                    models.Index(fields=['caller', '-last_asked_at', '-id'], name='thread_by_caller'),
                    models.Index(fields=['agent'], name='thread_by_agent'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ThreadTask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('asked_at', models.DateTimeField(help_text='When its first question was asked.')),
                ('whose', models.CharField(max_length=24)),
                ('question', models.TextField(help_text='The searched text of its questions.')),
                ('answer', models.TextField(help_text='The searched text of its answers.')),
                ('task', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='of_thread', to='a2a_bridge.storedtask')),
                ('thread', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='a2a_bridge.thread')),
            ],
            options={
                'indexes': [models.Index(fields=['thread', 'asked_at', 'id'], name='task_of_a_thread')],
            },
        ),
        AddFullText(
            FullText('a2a_bridge_threadtask', {'whose': PLACE, 'question': TEXT, 'answer': TEXT})
        ),
    ]
