import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_agnt_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='ClientGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('client_digest', models.CharField(help_text="SHA-256 of the client's id.", max_length=64)),
                ('app_name', models.CharField(max_length=60)),
                ('scopes', models.CharField(help_text='Separated by spaces.', max_length=64)),
                ('user_agent', models.CharField(blank=True, help_text='Of the request that exchanged the code.', max_length=300)),
                ('family_digest', models.CharField(max_length=64, unique=True)),
                ('digest', models.CharField(help_text='Of the valid refresh token.', max_length=64)),
                ('previous_digest', models.CharField(blank=True, max_length=64)),
                ('successor_secret', models.CharField(blank=True, max_length=32)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('refreshed_at', models.DateTimeField(blank=True, help_text='The last use of a refresh token.', null=True)),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('reused_at', models.DateTimeField(blank=True, help_text='When a used refresh token came again, which ended the grant.', null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='client_grants', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name='credential',
            name='grant',
            field=models.ForeignKey(blank=True, help_text='Of the client that refreshes it.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='access_tokens', to='accounts.clientgrant'),
        ),
        # two steps: not needed, the table is new
        migrations.AddConstraint(
            model_name='clientgrant',
            constraint=models.UniqueConstraint(condition=models.Q(('revoked_at', None)), fields=('user', 'client_digest'), name='one_grant_per_user_and_client'),
        ),
    ]
