"""Which IP addresses are public: lists of our own, because `ipaddress.is_global` forgets the ways around it."""

from ipaddress import IPv4Network, IPv6Network, ip_address

NOT_PUBLIC = [
    IPv4Network(block)
    for block in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carriers' NAT; some clouds keep their metadata there
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own door to each of its machines
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
PUBLIC_V6 = IPv6Network("2000::/3")  # all there is; mapped, NAT64, unique local and link-local lie outside
NOT_PUBLIC_V6 = [
    IPv6Network(block)
    for block in (
        "2001::/23",  # Teredo and other protocols, which carry an IPv4 address inside
        "2001:db8::/32",
        "2002::/16",  # 6to4, the same
        "3fff::/20",
    )
]


def is_public(address: str) -> bool:
    """Whether an address, in the form a resolver gives it, belongs to the public internet."""
    ip = ip_address(address)
    if ip.version == 4:
        return not any(ip in block for block in NOT_PUBLIC)
    return ip in PUBLIC_V6 and not any(ip in block for block in NOT_PUBLIC_V6)
