"""A proxy between a hub's processes and Redis."""

from contextlib import ExitStack

from lab.faults.proxy import Proxy, proxied
from lab.servers import Servers


class RedisProxy:
    """What a `Stack` takes as `via`: the hub reaches `redis` through a proxy, the suite directly."""

    redis: Proxy

    def __init__(self) -> None:
        self._open = ExitStack()

    def __call__(self, servers: Servers) -> Servers:
        self._open.close()
        self.redis = self._open.enter_context(proxied(servers.redis_port))
        return Servers(servers.postgres_port, self.redis.port)
