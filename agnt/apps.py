from django.apps import AppConfig


class AgntConfig(AppConfig):
    name = "agnt"
