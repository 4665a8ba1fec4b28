"""The verbs of operators: find whom a prompt is for, start it, watch a session."""
