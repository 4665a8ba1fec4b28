"""What the bridge keeps in the database."""

from a2a_bridge.push_models import Push, PushConfig

__all__ = ["Push", "PushConfig"]
