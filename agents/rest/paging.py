"""Lists in pages, as everywhere in the native API."""

from accounts.paging import page, read_query

__all__ = ["page", "read_query"]
