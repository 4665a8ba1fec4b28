"""The project's documentation as pages of the hub, with a search."""
