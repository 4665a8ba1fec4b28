"""All settings, read from the environment once (docs/reference/settings.md)."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from accounts.providers import LOOPBACK
from hub import env
from hub.data_dir import default_data_dir
from kit.asgi import MAX_BODY_BYTES
from kit.durations import TIME_SCALE, seconds

BASE_DIR = Path(__file__).resolve().parent.parent
PUBLIC_GITHUB = "https://github.com"

# Where it serves.
HOST = env.text("HOST", "127.0.0.1")
PORT = env.whole("PORT", 8787, least=1, most=65535)
LOCAL_URL = f"http://[{HOST}]:{PORT}" if ":" in HOST else f"http://{HOST}:{PORT}"
PUBLIC_URL = env.public_url("PUBLIC_URL", LOCAL_URL)
PATH_PREFIX = urlsplit(PUBLIC_URL).path
PUBLIC_ORIGIN = PUBLIC_URL.removesuffix(PATH_PREFIX)
DATA_DIR = Path(env.text("DATA_DIR", str(default_data_dir(BASE_DIR)))).resolve()
DATABASE_URL = env.text("DATABASE_URL")
REDIS_URL = env.text("REDIS_URL")

# How it behaves.
DEMO = env.flag("DEMO")
GATEWAY = env.flag("GATEWAY")
GATEWAY_PROTOTYPE = env.flag("GATEWAY_PROTOTYPE")
AGNT = env.flag("AGNT", default=True)
REPLY_WAIT_S = env.seconds("REPLY_WAIT_S", 60)
DRAIN_S = env.seconds("DRAIN_S", 25)
CALLER_RATE_PER_MINUTE = env.whole("CALLER_RATE_PER_MINUTE", 30)
STREAMS_PER_CALLER = env.whole("STREAMS_PER_CALLER", 100, least=1)
STREAM_MAX_AGE_S = env.seconds("STREAM_MAX_AGE_S", 75 * 60)
AGENTS_PER_OWNER = env.whole("AGENTS_PER_OWNER", 1000)
SESSIONS_PER_OWNER = env.whole("SESSIONS_PER_OWNER", 5000)
SOCKETS_PER_OWNER = env.whole("SOCKETS_PER_OWNER", 1000)
TOKENS_PER_OWNER = env.whole("TOKENS_PER_OWNER", 200)
WEBHOOKS_PER_OWNER = env.whole("WEBHOOKS_PER_OWNER", 50)
PUSH_CONFIGS_PER_CALLER = env.whole("PUSH_CONFIGS_PER_CALLER", 1000)
VENUES_PER_NETWORK = env.whole("VENUES_PER_NETWORK", 10_000)
LETTERS_PER_OWNER = env.whole("LETTERS_PER_OWNER", 5000)
LETTERS_MB_PER_OWNER = env.whole("LETTERS_MB_PER_OWNER", 64)
DOWNLOADS_PER_OWNER = env.whole("DOWNLOADS_PER_OWNER", 2)
DOWNLOADS_PER_PROCESS = env.whole("DOWNLOADS_PER_PROCESS", 8)
STORAGE_PER_OWNER_MB = env.whole("STORAGE_PER_OWNER_MB", 2048)
TURNS_KEPT_DAYS = env.whole("TURNS_KEPT_DAYS", 400, least=1)
QUESTIONS_KEPT_DAYS = env.whole("QUESTIONS_KEPT_DAYS", 90, least=1, most=36_500)
EVENTS_KEPT_DAYS = env.whole("EVENTS_KEPT_DAYS", 90, least=1, most=36_500)
FILES_KEPT_DAYS = env.whole("FILES_KEPT_DAYS", 30, least=1, most=36_500)
DELIVERIES_KEPT_DAYS = env.whole("DELIVERIES_KEPT_DAYS", 30, least=1)
LETTERS_KEPT_DAYS = env.whole("LETTERS_KEPT_DAYS", 30, least=1, most=36_500)
TASKS_MEMORY_MB = env.whole("TASKS_MEMORY_MB", 64, least=16)
TASKS_KEPT_DAYS = env.whole("TASKS_KEPT_DAYS", 7, least=1, most=36_500)
TEST_TIME_SCALE = TIME_SCALE
FORMATTERS = {"TEXT": "EventFormatter", "JSON": "JsonFormatter"}
LOG_FORMAT = env.choice("LOG_FORMAT", "TEXT", tuple(FORMATTERS))
LOG_LEVEL = env.choice("LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))

# Who watches it.
METRICS_TOKEN = env.text("METRICS_TOKEN")
OTEL_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_SHARE = env.share("OTEL_TRACES_SAMPLER_ARG", 1.0)
TRACE_UI_URL = env.link_template("TRACE_UI_URL", "{trace_id}")

# Whom it tells.
WEBHOOK_ALLOW_PRIVATE = env.flag("WEBHOOK_ALLOW_PRIVATE")
WEBHOOK_PORTS = env.ports("WEBHOOK_PORTS", "443 8443")
WEBHOOK_KEYS = env.keys("WEBHOOK_KEYS")

# What signs AGNT envelopes.
A2A_SIGNING_KEY = env.master_key("A2A_SIGNING_KEY")

# Who gets AGNT's bills: files below DATA_DIR, unless Stripe does.
INVOICES_DIR = DATA_DIR / "invoices"
STRIPE_API_KEY = env.text("STRIPE_API_KEY")
STRIPE_API_URL = env.base_url("STRIPE_API_URL", "https://api.stripe.com")
STRIPE_METER = env.text("STRIPE_METER", "agnt_booking_cents")

# Whom it mails: owners who want alerts.
EMAIL = env.choice("EMAIL", "OFF", ("OFF", "CONSOLE", "SMTP"))
SENDS_MAIL = EMAIL != "OFF"
EMAIL_BACKEND = f"django.core.mail.backends.{'dummy' if EMAIL == 'OFF' else EMAIL.lower()}.EmailBackend"
EMAIL_HOST = env.text("EMAIL_HOST", "localhost")
EMAIL_PORT = env.whole("EMAIL_PORT", 25, least=1, most=65535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS")
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL")
EMAIL_TIMEOUT = 5
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", f"clawbridge@{urlsplit(PUBLIC_URL).hostname}")

# Whom it calls: remote A2A servers that owners published.
REMOTE_ALLOW_PRIVATE = env.flag("REMOTE_ALLOW_PRIVATE")
REMOTE_PORTS = env.ports("REMOTE_PORTS", "443 8443")
REMOTE_RETRY_S = env.seconds("REMOTE_RETRY_S", 30)

# Who signs in.
GITHUB_CLIENT_ID = env.text("GITHUB_CLIENT_ID")
GITHUB_CLIENT_SECRET = env.text("GITHUB_CLIENT_SECRET")
GITHUB_URL = env.base_url("GITHUB_URL", PUBLIC_GITHUB)
GITHUB_API_URL = env.base_url(
    "GITHUB_API_URL", "https://api.github.com" if GITHUB_URL == PUBLIC_GITHUB else f"{GITHUB_URL}/api/v3"
)
OIDC_PROVIDERS = env.oidc_providers(
    env.text("OIDC_ISSUER"), env.text("OIDC_CLIENT_ID"), env.text("OIDC_CLIENT_SECRET"), env.text("OIDC_NAME")
)
SIGNUP = env.signup("SIGNUP")
APP_ORIGINS = env.origins("APP_ORIGINS")
SIGNIN_RATE_PER_MINUTE = env.whole("SIGNIN_RATE_PER_MINUTE", 60, least=20)
DEV_LOGIN = env.flag("DEV_LOGIN") and not GITHUB_CLIENT_ID and not OIDC_PROVIDERS

if bool(GITHUB_CLIENT_ID) != bool(GITHUB_CLIENT_SECRET):
    raise ImproperlyConfigured("GITHUB_CLIENT_ID and GITHUB_CLIENT_SECRET go together: set both, or neither")
if DEV_LOGIN and not env.is_loopback(PUBLIC_URL):
    raise ImproperlyConfigured(
        f"DEV_LOGIN=1 signs visitors in as any user, but PUBLIC_URL={PUBLIC_URL} is not loopback: set DEV_LOGIN=0"
    )
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise ImproperlyConfigured("EMAIL_USE_TLS and EMAIL_USE_SSL exclude each other: set one of them")
if env.flag("BEHIND_PROXY"):
    raise ImproperlyConfigured(
        "BEHIND_PROXY trusted the headers of every client and was removed: name your proxies in TRUSTED_PROXIES,"
        " such as TRUSTED_PROXIES=127.0.0.1"
    )
if bool(DATABASE_URL) != bool(REDIS_URL):
    raise ImproperlyConfigured("DATABASE_URL and REDIS_URL go together: set both, or neither for the embedded hub")

IS_EMBEDDED = not DATABASE_URL
TASK_STORE = env.choice("TASK_STORE", "MEMORY" if IS_EMBEDDED else "REDIS", ("MEMORY", "REDIS", "JOURNAL")).lower()
if TASK_STORE == "redis" and not REDIS_URL:
    raise ImproperlyConfigured("TASK_STORE=redis needs REDIS_URL: set it, or TASK_STORE=journal")
if TASK_STORE == "memory" and not IS_EMBEDDED:
    raise ImproperlyConfigured(
        "TASK_STORE=memory keeps tasks in one process, where the others do not find them: set redis or journal"
    )
RATE_STORAGE = REDIS_URL or "memory://"

# Django's own.
SECRET_KEY = env.secret_key(DATA_DIR, env.text("SECRET_KEY"))
SECRET_KEY_FALLBACKS = env.text("SECRET_KEY_FALLBACKS").split()
DEBUG = False
ALLOWED_HOSTS = [urlsplit(PUBLIC_URL).hostname or HOST, *LOOPBACK, "[::1]", *env.text("ALLOWED_HOSTS").split()]
CSRF_TRUSTED_ORIGINS = [PUBLIC_ORIGIN]
CSRF_FAILURE_VIEW = "accounts.error_pages.csrf_failure"
IS_HTTPS = PUBLIC_URL.startswith("https://")
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")  # uvicorn reads their headers: hub/server.py
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
PASSWORD_CHARS = 10
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ["login"]},
    },
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": PASSWORD_CHARS},
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
MAX_UPLOAD_BYTES = FILE_UPLOAD_MAX_MEMORY_SIZE = 10_485_760 + 65_536  # a file, and the multipart form around it
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
    "accounts.middleware.PagePolicyMiddleware",
    "accounts.middleware.TooManyMiddleware",
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
                "cached_statements": 512,  # the ledger's fixed ones, and the journal's, a text for each size
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-2000",
            },
        }
    }
else:
    DATABASES = {"default": env.postgres(DATABASE_URL)}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.rest.CredentialAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated", "accounts.rest.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
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
    "COMPONENT_SPLIT_REQUEST": True,  # a file is bytes on its way in
}

CELERY_BROKER_URL = REDIS_URL or None
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
JOBS_EVERY_S = seconds(5.0, at_least_s=1.0)
CELERY_BEAT_SCHEDULE = {  # of both homes: without Celery hub/job_thread.py runs it, in this order
    "sweep": {"task": "hub.sweep", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "deliver": {"task": "webhooks.deliver_due", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "push": {"task": "a2a.push_due", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "mail": {"task": "agents.send_mails", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "watch agents": {"task": "agents.watch", "schedule": 60.0, "options": {"expires": 60}},
    "erase": {"task": "hub.erase_closed", "schedule": 2 * JOBS_EVERY_S, "options": {"expires": 10}},
    "trim tasks": {"task": "a2a.trim_tasks", "schedule": 300.0, "options": {"expires": 300}},
    "letters": {"task": "gateway.tend_letters", "schedule": JOBS_EVERY_S, "options": {"expires": 10}},
    "forget letters": {"task": "gateway.forget_letters", "schedule": 3600.0, "args": [LETTERS_KEPT_DAYS]},
    "retain": {"task": "agents.retain", "schedule": 3600.0, "args": [TURNS_KEPT_DAYS]},
    "blank questions": {"task": "agents.blank_questions", "schedule": 3600.0, "args": [QUESTIONS_KEPT_DAYS]},
    "forget events": {"task": "agents.forget_events", "schedule": 3600.0, "args": [EVENTS_KEPT_DAYS]},
    "forget sessions": {"task": "gateway.forget_sessions", "schedule": 3600.0, "args": [EVENTS_KEPT_DAYS]},
    "forget proposals": {"task": "gateway.forget_proposals", "schedule": 3600.0, "args": [EVENTS_KEPT_DAYS]},
    "expire_files": {"task": "agents.expire_files", "schedule": 3600.0},
    "forget keys": {"task": "a2a.forget_keys", "schedule": 3600.0},
    "forget tasks": {"task": "a2a.forget_tasks", "schedule": 3600.0, "args": [TASKS_KEPT_DAYS]},
    "forget steps": {"task": "gateway.forget_protocol_tasks", "schedule": 3600.0, "args": [TASKS_KEPT_DAYS]},
    "forget deliveries": {"task": "webhooks.retain", "schedule": 3600.0, "args": [DELIVERIES_KEPT_DAYS]},
    "forget frames": {"task": "gateway.forget_frames", "schedule": 3600.0},
    "forget pushes": {"task": "a2a.forget_pushes", "schedule": 3600.0},
    "forget envelopes": {"task": "agnt.forget_seen", "schedule": 60.0, "options": {"expires": 60}},
    "check metering": {"task": "agnt.check_metering", "schedule": 300.0, "options": {"expires": 300}},
    "invoice": {"task": "agnt.send_invoices", "schedule": 3600.0},
    "forget interactions": {"task": "agnt.forget_interactions", "schedule": 3600.0},
    "forget key usage": {"task": "agnt.forget_usage", "schedule": 3600.0, "args": [TURNS_KEPT_DAYS]},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / f"celerybeat-{os.getpid()}")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"event": {"()": f"hub.logs.{FORMATTERS[LOG_FORMAT]}"}},
    "filters": {"jobs": {"()": "hub.logs.JobRecords"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "event"},
        "counts": {"class": "hub.logs.ErrorCounts", "level": "ERROR"},
    },
    "root": {"handlers": ["stderr", "counts"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": ["stderr", "counts"], "level": LOG_LEVEL, "propagate": False},
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "websockets": {"level": "INFO"},  # at DEBUG it logs the headers of every handshake
        "celery.app.trace": {"filters": ["jobs"]},
        "celery.worker.strategy": {"filters": ["jobs"]},
        "celery.beat": {"filters": ["jobs"]},
        "uvicorn": {"handlers": ["stderr", "counts"], "level": LOG_LEVEL, "propagate": False},
    },
}
