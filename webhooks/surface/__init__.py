"""The HTTP surface: the pages of webhooks, and their calls of the native API."""
