"""Django's settings. The modules that read an operator's setting declare it (kit/env.py)."""

import os

from django.core.exceptions import ImproperlyConfigured

from a2a_bridge.settings import *
from accounts.settings import *
from agents.settings import *
from agnt.settings import *
from evaluations.settings import *
from gateway.settings import *
from hub.data_dir import BASE_DIR, keep_secret_key
from hub.environment import *
from hub.postgresql import connection_settings
from kit import env
from kit.asgi import MAX_BODY_BYTES
from kit.durations import TIME_SCALE, seconds
from webhooks.settings import *

if DEV_LOGIN and not env.is_loopback(PUBLIC_URL):
    raise ImproperlyConfigured(
        f"DEV_LOGIN=1 signs visitors in as any user, but PUBLIC_URL={PUBLIC_URL} is not loopback: set DEV_LOGIN=0"
    )
TEST_TIME_SCALE = TIME_SCALE
FORMATTERS = {"text": "EventFormatter", "json": "JsonFormatter"}
EMAIL_BACKEND = f"django.core.mail.backends.{EMAIL if SENDS_MAIL else 'dummy'}.EmailBackend"
EMAIL_TIMEOUT = 5
SECRET_KEY = SECRET_KEY or keep_secret_key(DATA_DIR)  # the last: a bad setting leaves no file
DEBUG = False
CSRF_TRUSTED_ORIGINS = [PUBLIC_ORIGIN]
CSRF_FAILURE_VIEW = "accounts.error_responses.csrf_failure"
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if IS_HTTPS else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains and
    "security.W021",  # preloading concern the operator's whole domain, not this hub
    "security.W008",  # TLS ends at the proxy, and a redirected POST would lose its body
]
CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE = IS_HTTPS
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"
APPEND_SLASH = False
ROOT_URLCONF = "hub.urls"
ASGI_APPLICATION = "hub.asgi.application"
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
MIN_PASSWORD_CHARS = 10
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ["login"]},
    },
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": MIN_PASSWORD_CHARS},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
FORCE_SCRIPT_NAME = PATH_PREFIX or None
CSRF_COOKIE_PATH = SESSION_COOKIE_PATH = PATH_PREFIX or "/"
LOGIN_URL = "signin"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = ["hub.date_formats"]
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES
# 10 MiB for a file, and room for the multipart form around it.
MAX_UPLOAD_BYTES = FILE_UPLOAD_MAX_MEMORY_SIZE = 10_485_760 + 65_536
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]  # nothing goes to disk

INSTALLED_APPS = [
    "hub",  # before staticfiles, so that `runserver` is the hub's
    "django.contrib.admin.apps.SimpleAdminConfig",  # hub/urls.py loads the pages of the admin
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "accounts",
    "webhooks",
    "agents",
    "a2a_bridge",
    "gateway",
    "agnt",
    "evaluations",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "hub.static_files.CompressedStaticFiles",
    "accounts.middleware.AppOriginsMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "accounts.middleware.CredentialMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "accounts.middleware.PageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "libraries": {
                "page": "kit.page_tags",
                "reference": "a2a_bridge.surface.reference.tags",
            },
        },
    },
]

STATIC_URL = f"{PATH_PREFIX}/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

if IS_EMBEDDED:
    DATABASES: dict[str, dict[str, object]] = {
        "default": {
            "ENGINE": "hub.sqlite",
            "NAME": DATA_DIR / "hub.sqlite3",
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 5,
                # The ledger's statements, and the journal's, which differ by the number of rows.
                "cached_statements": 512,
                # 32 MB of log: before, a thread copies it into the file (`hub.runtime`), so that commits need not.
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000;"
                " PRAGMA wal_autocheckpoint=8000",
            },
        }
    }
else:
    DATABASES = {"default": connection_settings(DATABASE_URL)}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.rest.CredentialAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated", "accounts.rest.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["accounts.rest.MsgspecRenderer"],
    "DEFAULT_PARSER_CLASSES": ["accounts.rest.StrictJSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "accounts.rest.JSONNegotiation",
    "EXCEPTION_HANDLER": "accounts.rest.error_response",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_SCHEMA_CLASS": "hub.descriptions.rest.HubAutoSchema",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Clawbridge",
    "VERSION": "0.1.0",
    "DESCRIPTION": "A hub where AI agents answer questions across owners, vendors and firewalls.",
    "OAS_VERSION": "3.1.1",
    "SERVERS": [{"url": PUBLIC_URL}],
    "POSTPROCESSING_HOOKS": ["hub.descriptions.openapi.add_operations"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "COMPONENT_SPLIT_REQUEST": True,  # a file field is bytes only in requests
}

CELERY_BROKER_URL = REDIS_URL or None
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_DISABLE_PREFETCH = True  # a job that a worker has taken must not wait behind one that sends
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Jobs that send run for seconds, and each event calls one. Workers take from queues in the order of their names:
# `celery`, which has all other jobs, comes first.
SENDING_QUEUE = "sending"
SENDING_JOBS = ("webhooks.deliver_due", "a2a.push_due", "agents.send_mails")
CELERY_TASK_QUEUES: dict[str, dict[str, str]] = {"celery": {}, SENDING_QUEUE: {}}
CELERY_TASK_ROUTES = {name: {"queue": SENDING_QUEUE} for name in SENDING_JOBS}
CELERY_BROKER_TRANSPORT_OPTIONS = {"queue_order_strategy": "sorted"}
JOBS_EVERY_S = seconds(5.0, at_least_s=1.0)
CELERY_BEAT_SCHEDULE = {  # also the schedule of an embedded hub: hub/job_thread.py runs the jobs in this order
    "sweep": {"task": "hub.sweep", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "deliver": {"task": "webhooks.deliver_due", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "push": {"task": "a2a.push_due", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "mail": {"task": "agents.send_mails", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "group failures": {"task": "agents.group_failures", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "index threads": {"task": "a2a.index_threads", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "watch agents": {"task": "agents.watch", "schedule": 60.0, "options": {"expires": 60}},
    "rank agents": {"task": "agents.rank", "schedule": 300.0, "options": {"expires": 300}},
    "erase": {"task": "hub.erase_closed", "schedule": 2 * JOBS_EVERY_S, "options": {"expires": 10}},
    "trim tasks": {"task": "a2a.trim_tasks", "schedule": 300.0, "options": {"expires": 300}},
    "trim exchanges": {"task": "a2a.trim_exchanges", "schedule": 60.0, "options": {"expires": 60}},
    "letters": {"task": "gateway.tend_letters", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "forget letters": {"task": "gateway.forget_letters", "schedule": 3600.0, "args": [LETTERS_KEPT_DAYS]},
    "retain": {"task": "agents.retain", "schedule": 3600.0, "args": [TURNS_KEPT_DAYS]},
    "blank questions": {"task": "agents.blank_questions", "schedule": 3600.0, "args": [QUESTIONS_KEPT_DAYS]},
    "forget acts": {"task": "hub.forget_acts", "schedule": 3600.0, "args": [ACTS_KEPT_DAYS]},
    "forget events": {"task": "agents.forget_events", "schedule": 3600.0, "args": [EVENTS_KEPT_DAYS]},
    "forget sessions": {"task": "gateway.forget_sessions", "schedule": 3600.0, "args": [EVENTS_KEPT_DAYS]},
    "forget proposals": {"task": "gateway.forget_proposals", "schedule": 3600.0, "args": [EVENTS_KEPT_DAYS]},
    "expire_files": {"task": "agents.expire_files", "schedule": 3600.0},
    "forget keys": {"task": "a2a.forget_keys", "schedule": 3600.0},
    "forget tasks": {"task": "a2a.forget_tasks", "schedule": 3600.0, "args": [TASKS_KEPT_DAYS]},
    "forget exchanges": {"task": "a2a.forget_exchanges", "schedule": 3600.0},
    "forget steps": {"task": "gateway.forget_protocol_tasks", "schedule": 3600.0, "args": [TASKS_KEPT_DAYS]},
    "forget deliveries": {"task": "webhooks.retain", "schedule": 3600.0, "args": [DELIVERIES_KEPT_DAYS]},
    "forget frames": {"task": "gateway.forget_frames", "schedule": 3600.0},
    "forget pushes": {"task": "a2a.forget_pushes", "schedule": 3600.0},
    "start evaluations": {"task": "evaluations.start_due", "schedule": 60.0, "options": {"expires": 60}},
    "forget evaluations": {"task": "evaluations.forget_runs", "schedule": 3600.0, "args": [RUNS_KEPT_DAYS]},
    "forget shares": {"task": "a2a.forget_shares", "schedule": 3600.0},
    "forget envelopes": {"task": "agnt.forget_seen", "schedule": 60.0, "options": {"expires": 60}},
    "check metering": {"task": "agnt.check_metering", "schedule": 300.0, "options": {"expires": 300}},
    "invoice": {"task": "agnt.send_invoices", "schedule": 3600.0},
    "forget interactions": {"task": "agnt.forget_interactions", "schedule": 3600.0},
    "forget key usage": {"task": "agnt.forget_usage", "schedule": 3600.0, "args": [TURNS_KEPT_DAYS]},
}
CELERY_BEAT_SCHEDULER = "hub.beat_scheduler.Scheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / f"celerybeat-{os.getpid()}")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"event": {"()": f"hub.logs.{FORMATTERS[LOG_FORMAT]}"}},
    "filters": {"jobs": {"()": "hub.logs.JobRecords"}, "faults": {"()": "hub.logs.Faults"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "event"},
        "counts": {"class": "hub.logs.ErrorCounts", "level": "ERROR"},
    },
    "root": {"handlers": ["stderr", "counts"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": ["stderr", "counts"], "level": LOG_LEVEL, "propagate": False},
        "django.request": {"level": "ERROR", "filters": ["faults"]},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "websockets": {"level": "INFO"},  # at DEBUG it logs the headers of every handshake
        "celery.app.trace": {"filters": ["jobs"]},
        "celery.worker.strategy": {"filters": ["jobs"]},
        "celery.beat": {"filters": ["jobs"]},
        "uvicorn": {"handlers": ["stderr", "counts"], "level": LOG_LEVEL, "propagate": False},
    },
}
