"""The client: one connection with an endpoint of its own."""

from __future__ import annotations

import asyncio
import ctypes
from types import TracebackType
from typing import Any, Optional, Sequence, Tuple, Type

from ..library import (
    LIBRARY, ClientOptions, ConnectOptions, Route, TransportConfig, address, check,
)
from .connection import Connection
from .endpoint import Endpoint, now


def transport_config(scheduler: str, congestion: str, path_hints: bool, datagrams: bool) -> TransportConfig:
    """Limits and choices of connections."""
    config = TransportConfig()
    check(LIBRARY.hvq_transport_config_init(ctypes.byref(config), ctypes.sizeof(config)))
    config.scheduler, config.congestion = scheduler.encode(), congestion.encode()
    config.path_hints = int(path_hints)
    if datagrams:
        config.max_datagram_frame = 65535
    return config


def protocols(names: Sequence[str]) -> Any:
    """Names of protocols as C has them."""
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


class Connecting:
    """A connection that begins with `async with` or `await`, and ends with `async with`, or when it is closed."""

    def __init__(self, host: str, port: int, paths: Sequence[Any], local: Optional[str], options: Any) -> None:
        self._remote = (host, port)
        self._paths, self._local, self._options = paths, local, options
        self._config = ctypes.c_void_p()
        self._endpoint: Optional[Endpoint] = None
        self._connection: Optional[Connection] = None

    async def _begin(self) -> Connection:
        name, timeout = self._options["name"] or self._remote[0], self._options["timeout"]
        try:
            connection = self._connection = self._start(name)
            await asyncio.wait_for(connection.wait_connected(), timeout)
            for local, remote, *hints in self._paths:
                given = hints[0] if hints else {}
                await asyncio.wait_for(connection.open_path(local, remote or self._remote, **given), timeout)
        except BaseException:
            await self._end()
            raise
        asyncio.ensure_future(self._free_after(connection))
        return connection

    def _start(self, name: str) -> Connection:
        options, chosen = ClientOptions(), self._options
        transport = transport_config(
            chosen["scheduler"], chosen["congestion"], chosen["path_hints"], chosen["datagrams"]
        )
        check(LIBRARY.hvq_client_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        offered = protocols(chosen["alpn"])
        options.transport, options.alpn, options.alpn_count = ctypes.pointer(transport), offered, len(offered)
        options.ca_file, options.insecure = chosen["ca"] and str(chosen["ca"]).encode(), int(chosen["insecure"])
        check(LIBRARY.hvq_client_config_new(ctypes.byref(options), ctypes.byref(self._config)))
        pointer = ctypes.c_void_p()
        check(LIBRARY.hvq_endpoint_new(None, ctypes.byref(pointer)))
        self._endpoint = Endpoint(pointer, self._take)
        here, there = self._endpoint.bind_towards(self._remote, self._local)
        start = ConnectOptions(self._config, name.encode(), Route(address(*here), address(*there)))
        number = ctypes.c_uint64()
        check(LIBRARY.hvq_endpoint_connect(pointer, ctypes.byref(start), now(), ctypes.byref(number)))
        self._endpoint.pump_soon()
        return Connection(self._endpoint, number.value, f"{name}:{self._remote[1]}")

    def _take(self, event: Any) -> None:
        if self._connection is not None and event.connection == self._connection.number:
            self._connection.take(event)

    async def _free_after(self, connection: Connection) -> None:
        await connection.wait_closed()
        # The peer is told by the poll that told of the end, and what arrived can be read for as long as somebody asks now.
        await asyncio.sleep(0)
        await self._end()

    async def _end(self) -> None:
        if self._connection is not None and self._endpoint is not None and self._endpoint.pointer:
            self._connection.close(self._options["close_code"])
            self._endpoint.pump()
        if self._endpoint is not None:
            self._endpoint.close()
        if self._config:
            LIBRARY.hvq_client_config_free(self._config)
            self._config = ctypes.c_void_p()

    def __await__(self) -> Any:
        return self._begin().__await__()

    async def __aenter__(self) -> Connection:
        return await self._begin()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        await self._end()


def connect(
    host: str, port: int, *, paths: Sequence[Any] = (), local: Optional[str] = None, name: Optional[str] = None,
    ca: Optional[str] = None, insecure: bool = False, scheduler: str = "hvc", congestion: str = "cubic",
    alpn: Sequence[str] = ("h3",), timeout: float = 10.0, path_hints: bool = True, datagrams: bool = False,
) -> Connecting:
    """Connects to a server: `async with connect(…) as connection`, or `connection = await connect(…)`.

    The arguments are those of `hvq.connect`; `alpn` is a list of protocols, and `datagrams` permits the peer to send
    datagrams (RFC 9221). Fails with `hvq.ConnectionClosed`, TimeoutError, or OSError for an address that cannot be used.
    """
    return Connecting(host, port, paths, local, {
        "name": name, "ca": ca, "insecure": insecure, "scheduler": scheduler, "congestion": congestion,
        "alpn": list(alpn), "timeout": timeout, "path_hints": path_hints, "datagrams": datagrams,
        "close_code": 0x100 if "h3" in alpn else 0,
    })
