"""Files to run the hub in production; `deploy.stack` runs the same processes on one machine."""
