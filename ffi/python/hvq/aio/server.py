"""The server: connections on a few sockets, each given to a coroutine."""

from __future__ import annotations

import asyncio
import ctypes
import logging
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type

from ..client import ConnectionClosed
from ..library import CONNECTED, FORGOTTEN, LIBRARY, EndpointOptions, ServerOptions, check
from .client import protocols, transport_config
from .connection import Connection
from .endpoint import Endpoint

LOG = logging.getLogger("hvq")
Handler = Callable[[Connection], Awaitable[None]]


class Server:
    """A server that accepts connections until it is closed. Made by `serve`."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._connections: Dict[int, Connection] = {}
        self._tasks: Set[asyncio.Task[None]] = set()
        self._config = ctypes.c_void_p()
        self._closed = asyncio.Event()
        self._endpoint: Optional[Endpoint] = None
        self.addresses: List[Tuple[str, int]] = []

    def listen(self, addresses: Sequence[Tuple[str, int]], options: ServerOptions) -> None:
        """Makes the endpoint and binds its sockets."""
        try:
            check(LIBRARY.hvq_server_config_new(ctypes.byref(options), ctypes.byref(self._config)))
            wanted, pointer = EndpointOptions(), ctypes.c_void_p()
            check(LIBRARY.hvq_endpoint_options_init(ctypes.byref(wanted), ctypes.sizeof(wanted)))
            wanted.server = self._config
            check(LIBRARY.hvq_endpoint_new(ctypes.byref(wanted), ctypes.byref(pointer)))
            self._endpoint = Endpoint(pointer, self._take)
            self.addresses = [self._endpoint.bind(place) for place in addresses]
        except BaseException:
            self.close()
            raise

    def _take(self, event: Any) -> None:
        number = event.connection
        if event.kind == CONNECTED and number not in self._connections and self._endpoint is not None:
            connection = self._connections[number] = Connection(self._endpoint, number)
            task = asyncio.ensure_future(self._handle(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        found = self._connections.get(number)
        if found is not None:
            found.take(event)
        if event.kind == FORGOTTEN:
            self._connections.pop(number, None)

    async def _handle(self, connection: Connection) -> None:
        try:
            await self._handler(connection)
        except ConnectionClosed:
            pass
        except Exception:
            LOG.exception("the handler of a connection failed")
            connection.close(1, "the handler failed")

    async def wait_closed(self) -> None:
        """Waits until the server is closed."""
        await self._closed.wait()

    def close(self, code: int = 0) -> None:
        """Closes all connections and the sockets."""
        if self._endpoint is not None and self._endpoint.pointer:
            for connection in list(self._connections.values()):
                connection.close(code)
            self._endpoint.pump()
            self._endpoint.close()
        for task in list(self._tasks):
            task.cancel()
        if self._config:
            LIBRARY.hvq_server_config_free(self._config)
            self._config = ctypes.c_void_p()
        self._closed.set()

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


async def serve(
    addresses: Sequence[Tuple[str, int]], handler: Handler, *, certificate: str, key: str,
    alpn: Sequence[str] = ("h3",), scheduler: str = "hvc", congestion: str = "cubic", path_hints: bool = True,
    datagrams: bool = False,
) -> Server:
    """Listens on addresses of this machine, each a host and a port (0 for any), and calls `handler` for every connection.

    `certificate` and `key` are PEM files. Clients open further paths to any of the addresses. Fails with `hvq.Error` for
    names and files that are wrong, with OSError for an address that cannot be used.
    """
    options = ServerOptions()
    transport = transport_config(scheduler, congestion, path_hints, datagrams)
    check(LIBRARY.hvq_server_options_init(ctypes.byref(options), ctypes.sizeof(options)))
    offered = protocols(list(alpn))
    options.transport, options.alpn, options.alpn_count = ctypes.pointer(transport), offered, len(offered)
    options.certificate_file, options.key_file = str(certificate).encode(), str(key).encode()
    server = Server(handler)
    server.listen(addresses, options)
    return server
