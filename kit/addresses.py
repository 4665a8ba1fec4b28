"""Addresses of clients as they are counted."""

import ipaddress


def network_of(address: str) -> str:
    """What an address of a client is counted as: all of an IPv6 /64 is one, and one network has them all."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(ipaddress.ip_network((ip, 64), strict=False)) if ip.version == 6 else str(ip)
