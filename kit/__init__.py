"""General tools without any knowledge of the hub, one topic per module."""
