"""How the hub is run for others; `deploy.stack` tries the same shape on one machine."""
