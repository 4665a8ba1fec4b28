"""What HTTP reaches: the pages of webhooks, and their calls of the native API."""
