"""Connections over several paths from Python, through libhvq and ctypes: nothing is compiled.

    import hvq
    with hvq.connect("192.0.2.1", 4433, name="example.org", paths=[("10.0.0.2", ("192.0.2.1", 4434))]) as connection:
        print(connection.get("/").body)
        for path in connection.paths():
            print(path)
"""

from .client import Connection, ConnectionClosed, PathInfo, Response, connect
from .library import LIBRARY, Error

__all__ = ["Connection", "ConnectionClosed", "Error", "PathInfo", "Response", "connect", "version"]


def version():
    """The version of the library."""
    return LIBRARY.hvq_version().decode()
