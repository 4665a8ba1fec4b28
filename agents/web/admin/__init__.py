"""The Django admin of agents: agents, blocks and turns for their owners, everything else for staff."""
