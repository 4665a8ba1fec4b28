"""The link to agents that listen themselves: remote A2A servers, called by their card."""
