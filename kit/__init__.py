"""Tools that know nothing of the hub, one topic a module."""
