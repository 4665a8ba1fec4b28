"""The functions of operators: find the target of a prompt, start the ask, watch a session."""
