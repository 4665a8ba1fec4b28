"""Proxies between a hub's processes and its servers."""

from contextlib import ExitStack

from faults.proxy import Proxy, proxied
from tests.servers import Servers


class Between:
    """What a `Stack` takes as `via`: the hub reaches `redis` and `postgres` through proxies, the harness not."""

    redis: Proxy
    postgres: Proxy

    def __init__(self) -> None:
        self._open = ExitStack()

    def __call__(self, servers: Servers) -> Servers:
        self._open.close()
        self.redis = self._open.enter_context(proxied(servers.redis_port))
        self.postgres = self._open.enter_context(proxied(servers.postgres_port))
        return Servers(self.postgres.port, self.redis.port)
