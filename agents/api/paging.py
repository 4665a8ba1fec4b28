"""Lists in pages, as everywhere in the native API."""

from accounts.paging import MAX_LIMIT, PageQuery, page, read_query

__all__ = ["MAX_LIMIT", "PageQuery", "page", "read_query"]
