"""Network addresses of clients, and the names that the app is opened under."""

from ipaddress import IPv6Address, IPv6Network, ip_address

CONNECTIONS = 100  # of one address, unless LAMA_ADDRESS_CONNECTIONS has another number


def network_address(address: str | None) -> str:
    """The client's IPv4 address; for IPv6, the /64 network, of which a client can use any address.

    address: The client's address; None means this machine (Streamlit's convention).
    """
    try:
        found = ip_address(address or "127.0.0.1")
    except ValueError:
        return str(address)
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        return str(found.ipv4_mapped)
    if isinstance(found, IPv6Address):
        return str(IPv6Network((int(found), 64), strict=False))
    return str(found)
