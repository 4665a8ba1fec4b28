"""Groups addresses of clients for counts and limits."""

import ipaddress


def network_of(address: str) -> str:
    """The key under which to count a client: its IPv4 address, or its IPv6 /64, which one client may have."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)
