"""A session names its link, and says since when a link without connections reaches its agent."""

from typing import Any

from django.db import migrations, models
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce, Now


def name_links(apps: Any, schema_editor: Any) -> None:
    """Fill the columns of sessions with a remote server, in one UPDATE.

    All others have what the columns begin with.
    """
    session, server = apps.get_model("agents", "Session"), apps.get_model("agents", "RemoteServer")
    retry_at = server.objects.filter(session=OuterRef("pk")).values("retry_at")
    remote = session.objects.filter(pk__in=server.objects.values("session_id"))
    remote.update(link="remote", reachable_from=Coalesce(Subquery(retry_at), Now()))


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0018_token_usage_written'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='link',
            field=models.CharField(db_default='channel', default='channel', editable=False, max_length=32),
        ),
        migrations.AddField(
            model_name='session',
            name='reachable_from',
            field=models.DateTimeField(editable=False, null=True),
        ),
        # Nothing to undo: the columns go, and the table of remote servers was not changed.
        migrations.RunPython(name_links, migrations.RunPython.noop),
    ]
