from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_without_github'),
    ]

    operations = [
        migrations.AddField(
            model_name='logincode',
            name='client_digest',
            field=models.CharField(blank=True, db_default='', default='', help_text='Of the registered client and its redirect address.', max_length=64),
        ),
        migrations.AddField(
            model_name='logincode',
            name='scopes',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        # two steps: not needed, the list of choices is no part of the table
        migrations.AlterField(
            model_name='logincode',
            name='purpose',
            field=models.CharField(choices=[('cli', 'command line'), ('app', 'app'), ('reg', 'registered client')], max_length=3),
        ),
    ]
