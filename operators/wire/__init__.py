"""The bodies and frames of operators, and their errors. No I/O."""
