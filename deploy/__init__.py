"""Files to run the hub for others; `deploy.stack` tries the same shape on one machine."""
