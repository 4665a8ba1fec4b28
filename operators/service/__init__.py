"""What operators do: find whom a prompt is for, start it, watch a session."""
