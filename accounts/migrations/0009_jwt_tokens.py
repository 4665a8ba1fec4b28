from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0008_registered_clients'),
    ]

    operations = [
        migrations.AddField(
            model_name='credential',
            name='is_jwt',
            field=models.BooleanField(db_default=False, default=False, help_text='Its text is a signed JWT, not random characters.', verbose_name='JWT'),
        ),
    ]
