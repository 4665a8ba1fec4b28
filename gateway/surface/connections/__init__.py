"""Sockets and requests of clients."""
