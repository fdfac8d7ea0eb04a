"""Connections over several paths from Python, through libhvq and ctypes: nothing is compiled.

    import hvq
    with hvq.connect("192.0.2.1", 4433, name="example.org", paths=[("10.0.0.2", ("192.0.2.1", 4434))]) as connection:
        print(connection.get("/").body)
        for path in connection.paths():
            print(path)
"""

from .client import Connection, ConnectionClosed, connect
from .http3 import Response
from .library import LIBRARY, Error
from .paths import PathInfo

__all__ = ["Connection", "ConnectionClosed", "Error", "PathInfo", "Response", "connect", "version"]


def version() -> str:
    """The version of the library."""
    return str(LIBRARY.hvq_version().decode())
