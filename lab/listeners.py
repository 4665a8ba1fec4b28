"""Servers of asyncio that end without leaving a connection open."""

import asyncio

ROUNDS = 3  # of the loop: what the kernel took is accepted, connected, and given to its handler


async def stop_accepting(server: asyncio.Server) -> None:
    """Close a server; every connection that it accepted was given to its handler when this returns.

    `Server.close` alone is not enough: Python 3.11 neither serves nor closes a connection that was accepted in the
    same round of the loop.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener)
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    server.close()
