"""Lists in pages, as everywhere in the native API."""

from accounts.paging import PageQuery, page, read_query

__all__ = ["PageQuery", "page", "read_query"]
