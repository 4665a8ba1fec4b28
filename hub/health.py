"""Is the process alive, and can it serve?"""

import threading

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

draining = threading.Event()


@require_safe
def livez(request: HttpRequest) -> JsonResponse:
    """200 while the process answers at all."""
    return JsonResponse({"ok": True})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and the process takes new work; 503 otherwise."""
    if draining.is_set():
        return JsonResponse({"ok": False, "draining": True}, status=503)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"ok": False, "database": "out of reach"}, status=503)
    return JsonResponse({"ok": True, "database": "ok"})
