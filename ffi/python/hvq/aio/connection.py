"""Connections, of clients and servers."""

from __future__ import annotations

import asyncio
import ctypes
import time
import weakref
from typing import Any, AsyncIterator, Dict, List, Optional, Tuple

from ..client import ConnectionClosed
from ..http3 import Response, get_request, opening, response
from ..library import (
    BIDIRECTIONAL, BLOCKED, CLOSED, CONNECTED, DATAGRAM, LIBRARY, NEVER, NONE, OK, PATH_AVAILABLE, PATH_FAILED,
    PATH_VALIDATED, READABLE, STOPPED, STREAM_OPENED, STREAMS_AVAILABLE, UNIDIRECTIONAL, WRITABLE, Buffer, Bytes,
    Datagram, Hints, Path, PathStatistics, Route, address, check, error,
)
from ..library import Stream as Number
from ..paths import PathInfo, hints as hints_from, hints_told, path_info
from .endpoint import Endpoint, now
from .stream import Stream

LIMIT, NO_CONNECTION_ID = -19, -21


class Connection:
    """A connection. Iterating over it yields the streams that the peer opens."""

    def __init__(self, endpoint: Endpoint, number: int, authority: str = "") -> None:
        self.endpoint = endpoint
        self.number = number
        self._authority = authority
        # Streams that the program has dropped need no events.
        self._streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
        self._accepted: asyncio.Queue[Optional[Stream]] = asyncio.Queue()
        self._connected = asyncio.get_running_loop().create_future()
        self._closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._changed = asyncio.Event()
        self._validated: Dict[int, bool] = {}
        self._has_control_stream = False

    # Events, which the owner of the endpoint passes on.

    def take(self, event: Any) -> None:
        """Takes an event of this connection."""
        kind = event.kind
        if kind == CONNECTED:
            self._is_connected()
        elif kind == CLOSED:
            self._is_closed(event.bytes.copy().decode(errors="replace") or f"closed with code {event.code}")
        elif kind == STREAM_OPENED:
            self._accept(event.direction)
        elif kind in (READABLE, STOPPED, WRITABLE):
            stream = self._streams.get(event.stream)
            if stream is not None:
                (stream.wake_reader if kind == READABLE else stream.wake_writer)()
        elif kind in (PATH_VALIDATED, PATH_FAILED):
            self._validated[event.path] = kind == PATH_VALIDATED
            self._wake()
        elif kind in (STREAMS_AVAILABLE, PATH_AVAILABLE, DATAGRAM):
            self._wake()

    def _is_connected(self) -> None:
        if not self._connected.done():
            self._connected.set_result(None)

    def _is_closed(self, reason: str) -> None:
        if not self._connected.done():
            self._connected.set_exception(ConnectionClosed(reason))
            self._connected.exception()  # It is told to whoever waits; nobody has to.
        if not self._closed.done():
            self._closed.set_result(reason)
        for stream in list(self._streams.values()):
            stream.wake()
        self._accepted.put_nowait(None)
        self._wake()

    def _wake(self) -> None:
        """Lets everybody look again who waits for streams, paths or datagrams."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _accept(self, direction: int) -> None:
        name = Number()
        while LIBRARY.hvq_stream_accept(self.endpoint.pointer, self.number, direction, ctypes.byref(name)) == OK:
            self._accepted.put_nowait(self._keep(name.id))

    def _keep(self, number: int) -> Stream:
        stream = self._streams[number] = Stream(self, number)
        return stream

    def check_exists(self) -> None:
        """Fails if the endpoint is gone."""
        if not self.endpoint.pointer:
            raise ConnectionClosed(self._closed.result() if self._closed.done() else "closed")

    def check_open(self) -> None:
        """Fails if the connection is over."""
        self.check_exists()
        if self._closed.done():
            raise ConnectionClosed(self._closed.result())

    # Waiting.

    async def wait_connected(self) -> None:
        """Waits until the peer is authenticated."""
        await asyncio.shield(self._connected)

    async def wait_closed(self) -> str:
        """Waits until the connection is over, and returns why."""
        return await asyncio.shield(self._closed)

    # Streams.

    async def open_stream(self, unidirectional: bool = False) -> Stream:
        """Opens a stream, as soon as the peer permits one."""
        name = Number()
        direction = UNIDIRECTIONAL if unidirectional else BIDIRECTIONAL
        while True:
            self.check_open()
            changed = self._changed
            result = LIBRARY.hvq_stream_open(self.endpoint.pointer, self.number, direction, ctypes.byref(name))
            if result == OK:
                return self._keep(name.id)
            if result != BLOCKED:
                raise error(result)
            await changed.wait()

    async def accept_stream(self) -> Optional[Stream]:
        """Returns the next stream that the peer opened, or None when the connection is over."""
        stream = await self._accepted.get()
        if stream is None:
            self._accepted.put_nowait(None)
        return stream

    async def __aiter__(self) -> AsyncIterator[Stream]:
        while (stream := await self.accept_stream()) is not None:
            yield stream

    async def exchange(self, data: bytes, urgency: int = 3) -> bytes:
        """Sends bytes on a stream of its own, and returns what the peer sends back until it ends the stream."""
        stream = await self.open_stream()
        stream.set_priority(urgency)
        await stream.write(data)
        stream.finish()
        return await stream.read_all()

    async def get(self, path: str = "/", urgency: int = 3, headers: Tuple[Tuple[str, str], ...] = ()) -> Response:
        """Fetches a path over HTTP/3, with an urgency of RFC 9218 from 0 to 7."""
        if not self._has_control_stream:
            self._has_control_stream = True
            await (await self.open_stream(unidirectional=True)).write(opening())
        begin = time.monotonic()
        found: Response = response(await self.exchange(get_request(self._authority, path, urgency, headers), urgency))
        found.seconds = time.monotonic() - begin
        return found

    # Datagrams (RFC 9221).

    def send_datagram(self, data: bytes, urgency: int = 3) -> None:
        """Queues a datagram, which arrives once, late, or never."""
        self.check_open()
        kept = ctypes.create_string_buffer(bytes(data), len(data))
        made = Datagram(Bytes(ctypes.cast(kept, ctypes.c_void_p), len(data)), NEVER, urgency, 0)
        check(LIBRARY.hvq_datagram_send(self.endpoint.pointer, self.number, ctypes.byref(made)))
        self.endpoint.pump_soon()

    async def receive_datagram(self) -> bytes:
        """Returns the next datagram."""
        room = ctypes.create_string_buffer(65535)
        buffer = Buffer(ctypes.cast(room, ctypes.c_void_p), 65535, 0)
        while True:
            self.check_open()
            changed = self._changed
            result = LIBRARY.hvq_datagram_receive(self.endpoint.pointer, self.number, ctypes.byref(buffer))
            if result == OK:
                return room.raw[: buffer.length]
            if result != NONE:
                raise error(result)
            await changed.wait()

    # Paths (RFC 10069).

    async def open_path(self, local: Optional[str], remote: Tuple[str, int], **hints: Any) -> int:
        """Opens a path from a local address, waits until the peer answered over it, and returns its number.

        `hints` are those of `set_hints`. Fails with OSError if the address cannot be used or nobody answers there.
        """
        here, there = self.endpoint.bind_towards(remote, local)
        route, path = Route(address(*here), address(*there)), Path()
        while True:
            self.check_open()
            changed = self._changed
            result = LIBRARY.hvq_path_open(
                self.endpoint.pointer, self.number, ctypes.byref(route), now(), ctypes.byref(path)
            )
            if result == OK:
                break
            if result not in (BLOCKED, LIMIT, NO_CONNECTION_ID):
                raise error(result)
            await changed.wait()
        if hints:
            self.set_hints(path.id, **hints)
        self.endpoint.pump_soon()
        while path.id not in self._validated:
            self.check_open()
            await self._changed.wait()
        if not self._validated[path.id]:
            raise OSError(f"nobody answers on the path from {here[0]} to {there[0]} port {there[1]}")
        return int(path.id)

    def abandon_path(self, path: int, code: int = 0) -> None:
        """Gives up a path. What is in flight there goes over the others."""
        self.check_open()
        check(LIBRARY.hvq_path_abandon(self.endpoint.pointer, Path(self.number, path), code, now()))
        self.endpoint.pump_soon()

    def set_hints(self, path: int = 0, **hints: Any) -> None:
        """Says what is known of the channel of a path, in place of what was said before: see `hvq.Connection.set_hints`."""
        self.check_open()
        made = hints_from(**hints)
        check(LIBRARY.hvq_path_set_hints(self.endpoint.pointer, Path(self.number, path), ctypes.byref(made)))
        self.endpoint.pump_soon()

    def peer_hints(self, path: int = 0) -> Dict[str, Any]:
        """What the peer told of the channel of a path."""
        self.check_open()
        told = Hints()
        check(LIBRARY.hvq_path_get_peer_hints(self.endpoint.pointer, Path(self.number, path), ctypes.byref(told)))
        return hints_told(told)

    def paths(self) -> List[PathInfo]:
        """Snapshots of the open paths."""
        self.check_open()
        room, count = (PathStatistics * 64)(), ctypes.c_size_t()
        check(LIBRARY.hvq_path_list(self.endpoint.pointer, self.number, room, 64, ctypes.byref(count)))
        return [path_info(room[index]) for index in range(count.value)]

    @property
    def alpn(self) -> str:
        """The application protocol that was agreed on."""
        self.check_open()
        room = ctypes.create_string_buffer(256)
        check(LIBRARY.hvq_connection_alpn(self.endpoint.pointer, self.number, room, 256))
        return room.value.decode()

    def close(self, code: int = 0, reason: str = "") -> None:
        """Closes the connection. Unsent data is dropped."""
        if self.endpoint.pointer and not self._closed.done():
            LIBRARY.hvq_connection_close(self.endpoint.pointer, self.number, code, reason.encode() or None, now())
            self.endpoint.pump_soon()
