"""Pages about agents."""
