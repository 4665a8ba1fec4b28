"""The native API's calls on webhooks."""
