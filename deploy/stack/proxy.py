"""A reverse proxy in front of the stack, where one is installed: Caddy or nginx, with the files of `deploy/`."""

import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from lab.processes import Program

DEPLOY = Path(__file__).resolve().parents[1]
NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
{user}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream clawbridge {{ {servers} keepalive 64; keepalive_timeout 60s; }}
    map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
    server {{
        listen {address};
        include {locations};
    }}
}}
"""


def find_proxy() -> str | None:
    """The proxy that is installed: its program's path."""
    return shutil.which("caddy") or shutil.which("nginx")


def proxy(program: str, folder: Path, address: str, upstreams: Sequence[str]) -> Program:
    """A proxy that listens on `address` and passes on to `upstreams`, all of the form host:port."""
    if Path(program).name == "caddy":
        site = {"HUB_SITE": f"http://{address}", "HUB_UPSTREAMS": " ".join(upstreams), "HOME": str(folder)}
        command: list[str | Path] = [program, "run", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile"]
        env = {**os.environ, **site}
    else:
        command = [program, "-e", "stderr", "-p", folder, "-c", _nginx_conf(folder, address, upstreams)]
        env = dict(os.environ)
    url = f"http://{address}/livez"
    log, name = folder / "logs" / "proxy.log", Path(program).name
    return Program(command, log, name=name, env=env, is_ready=lambda _: _answers(url))


def _nginx_conf(folder: Path, address: str, upstreams: Sequence[str]) -> Path:
    servers = " ".join(f"server {one} max_fails=1 fail_timeout=2s;" for one in upstreams)
    user = "user root;" if os.geteuid() == 0 else ""  # the workers write temporary files to the stack's folder
    file = folder / "nginx.conf"
    locations = DEPLOY / "nginx" / "locations.conf"
    file.write_text(NGINX.format(folder=folder, user=user, servers=servers, address=address, locations=locations))
    return file


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310  an address of our own
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
