"""Checks where a URL leads: one parser for its parts, one lookup for its addresses, both checked against the
rules.

Cards, webhooks and pushes read the addresses that users give here and nowhere else.
"""

import queue
import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urljoin

import httpx2

SCHEMES = {"https": 443, "http": 80}
MAX_URL_CHARS = 2048
MAX_ADDRESSES = 16
HOST_NAME = re.compile(r"(?=.{1,254}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.ASCII)
# Lists of our own, because `ipaddress.is_global` misses addresses that translate into private ones.
NOT_PUBLIC = [
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' NAT; some clouds keep their metadata there
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's service address on each of its machines
        "169.254.0.0/16",  # link-local, metadata services
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",  # relays into 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
]
# All public IPv6; mapped, NAT64, unique local and link-local addresses lie outside.
PUBLIC_V6 = IPv6Network("2000::/3")
NOT_PUBLIC_V6 = [
    IPv6Network(block)
    for block in (
        "2001::/23",  # Teredo and other protocols, which carry an IPv4 address inside
        "2001:db8::/32",
        "2002::/16",  # 6to4, which carries an IPv4 address too
        "3fff::/20",
    )
]

Resolve = Callable[[str, int], Sequence[str]]


class NotSent(Exception):
    """The hub does not send to this URL, and sent nothing.

    The text says why, and may be shown to the user who gave the URL.
    """


class NotPublic(NotSent):
    """The host is this machine or in a private network, or has no address: the texts must not differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRules:
    """The permitted targets. `allows_private`: any address and port, also by http, as in one's own network."""

    ports: frozenset[int] = frozenset({443, 8443})
    allows_private: bool = False


@dataclass(frozen=True, slots=True)
class AllowedUrl:
    """A URL whose parts are allowed."""

    url: httpx2.URL
    host: str
    port: int


def parse_url(url: str) -> httpx2.URL:
    """The parts of a URL, read in the one way that all requests use.

    Raises:
        NotSent: the text is too long, or not a URL.
    """
    if len(url) > MAX_URL_CHARS:
        raise NotSent(f"the URL is longer than {MAX_URL_CHARS} characters")
    try:
        return httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise NotSent("this is not a URL") from None


def join_url(base: str, reference: str) -> str:
    """A URL relative to another one.

    Raises:
        NotSent: the result is not a URL.
    """
    try:
        joined = urljoin(base, reference)
    except ValueError:
        raise NotSent("this is not a URL") from None
    parse_url(joined)
    return joined


def read_target(url: str, rules: TargetRules) -> AllowedUrl:
    """The parts of a URL, checked against the rules.

    Raises:
        NotSent: the scheme, the host, the port or the form is not allowed.
    """
    parsed = parse_url(url)
    host = parsed.raw_host.decode("ascii")
    if not rules.allows_private and _is_hidden(host):
        raise NotPublic(f"{host} is this machine or an address of a private network")
    if parsed.scheme not in SCHEMES or (parsed.scheme == "http" and not rules.allows_private):
        raise NotSent("want a URL that begins with https://")
    if parsed.userinfo:
        raise NotSent("the URL may not hold a user name or password")
    port = SCHEMES[parsed.scheme] if parsed.port is None else parsed.port
    if not host:
        raise NotSent("the URL names no host")
    if not HOST_NAME.fullmatch(host) and not _is_v6(host):
        raise NotSent("the host is neither a name nor an address")
    if not 0 < port < 65536 or (port not in rules.ports and not rules.allows_private):
        allowed = ", ".join(map(str, sorted(rules.ports)))
        raise NotSent(f"port {port} is not allowed: want one of {allowed}")
    return AllowedUrl(parsed, host, port)


def addresses_of(target: AllowedUrl, rules: TargetRules, resolve: Resolve, *, within_s: float) -> list[str]:
    """The addresses of a target's host, resolved once; all of them are allowed.

    A name that does not exist and one that is not public read the same: the answer must not reveal hosts of our
    network. A hub that allows private addresses has nothing to hide.

    Raises:
        NotSent: the host has no address, or too many to check, or one that is not public.
        TimeoutError: the resolver did not answer in time.
    """
    found = _within(within_s, resolve, target.host, target.port)
    # One private address among public ones refuses the name: any of them may be the one that is connected to.
    if not found and rules.allows_private:
        raise NotSent(f"{target.host} cannot be found")
    is_refused = not rules.allows_private and (len(found) > MAX_ADDRESSES or not all(map(is_public, found)))
    if not found or is_refused:
        raise NotPublic(f"{target.host} cannot be found, or does not lead to public addresses alone")
    return found[:MAX_ADDRESSES]


def system_resolver(host: str, port: int) -> list[str]:
    """The system's resolver: unique addresses, none when the name is unknown."""
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def is_public(address: str) -> bool:
    """True if an address, in the form a resolver gives it, belongs to the public internet."""
    ip = ip_address(address)
    if ip.version == 4:
        return not any(ip in block for block in NOT_PUBLIC)
    return ip in PUBLIC_V6 and not any(ip in block for block in NOT_PUBLIC_V6)


def _is_hidden(host: str) -> bool:
    """True if the host is written as an address that is not public, or is the name of this machine."""
    try:
        return not is_public(host)
    except ValueError:
        return host.removesuffix(".").rpartition(".")[2] == "localhost"


def _is_v6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _within(within_s: float, resolve: Resolve, host: str, port: int) -> list[str]:
    """Resolve a host in a thread, which is abandoned at the timeout, because `getaddrinfo` has none."""
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(resolve(host, port)))
        except Exception as failure:  # noqa: BLE001  raised again by who waits
            answers.put(failure)

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=max(within_s, 0))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, Exception):
        raise answer
    return answer
