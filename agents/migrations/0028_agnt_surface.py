from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0027_gateway_surface'),
    ]

    # two steps: not needed, the list of choices is no part of the table
    operations = [
        migrations.AlterField(
            model_name='turn',
            name='surface',
            field=models.CharField(choices=[('a2a', 'A2A'), ('prompt', 'REST prompt'), ('cli', "operator's socket"), ('route', 'REST route'), ('probe', 'probe'), ('dispatch', 'another agent'), ('mcp', 'MCP'), ('chat', 'chat completions'), ('gateway', 'gateway message'), ('agnt', 'AGNT envelope')], max_length=16),
        ),
    ]
