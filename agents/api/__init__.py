"""Sessions and agents over REST (docs/reference/rest.md)."""
