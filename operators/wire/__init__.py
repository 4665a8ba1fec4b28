"""The bodies and frames of operators, and their errors. The module does no I/O."""
