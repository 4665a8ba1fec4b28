"""Sockets and requests of clients, and the seats of agents."""
