"""A client: one connection over one path or several, HTTP/3 or plain streams."""

from __future__ import annotations

import ctypes
import select
import socket
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple, Type

from .http3 import Response, get_request, opening, response
from .library import (
    BIDIRECTIONAL, BLOCKED, CLOSED, CONNECTED, END, EVENT, IDLE, LIBRARY, NEVER, OK, PATH_AVAILABLE, PATH_FAILED,
    PATH_VALIDATED, READABLE, STREAM_OPENED, TRANSMIT, UNIDIRECTIONAL, Bytes, ClientOptions, ConnectOptions, Event,
    Hints, Incoming, Output, Path, PathStatistics, Route, Stream, TransportConfig, address, check, error,
)
from .paths import PathInfo, hints as hints_from, hints_told, path_info, text


class ConnectionClosed(Exception):
    """The connection ended before the call was done."""


@dataclass
class _Incoming:
    """What arrived on a stream."""

    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    failure: Optional[Exception] = None


def connect(host: str, port: int, **options: Any) -> Connection:
    """Connects to a server; see Connection."""
    return Connection(host, port, **options)


class Connection:
    """A connection to the server `host`:`port`, verified as `name` (`host` by default).

    `paths` lists further paths, each a local address and a remote (host, port) or None for that of the first path, and
    hints about its channel, if there are any: the arguments of `set_hints` as a dict. The server is told them, unless
    `path_hints` is false.
    `local` is the local address of the first path, `ca` a PEM file with trusted certificates (the system's by default),
    `insecure` trusts everybody, `scheduler` and `congestion` are names. The calls of a connection do its I/O: between
    them nothing happens, so a connection that idles for longer than the server permits is over. Use it in one thread at a
    time, and close it, or use it with `with`.
    """

    def __init__(
        self, host: str, port: int, *, paths: Sequence[Any] = (), local: Optional[str] = None,
        name: Optional[str] = None, ca: Optional[str] = None, insecure: bool = False, scheduler: str = "hvc",
        congestion: str = "cubic", alpn: str = "h3", timeout: float = 10.0, path_hints: bool = True,
    ) -> None:
        self._sockets: Dict[Tuple[str, int], Tuple[socket.socket, Any, _Remote]] = {}
        self._incoming: Dict[int, _Incoming] = {}
        self._wanted: List[Tuple[Route, Optional[Hints]]] = []
        self._validated: Set[int] = set()
        self._failed: Set[int] = set()
        self._endpoint, self._config = ctypes.c_void_p(), ctypes.c_void_p()
        self._id, self._connected = ctypes.c_uint64(), False
        self._closed: Optional[str] = None
        self._available, self._alpn, self._http = False, alpn, False
        self.timeout = timeout
        try:
            self._start(host, port, local, name or host, (ca, insecure, scheduler, congestion, path_hints))
            first = next(iter(self._sockets.values()))[2]
            for path_local, remote, *hints in paths:
                route = self._route(path_local, remote or (first.host, first.port))
                self._wanted.append((route, hints_from(**hints[0]) if hints else None))
            self._run(lambda: self._connected)
            for index in range(1, len(self._wanted) + 1):
                self._run(lambda: len(self._validated | self._failed) >= index)
        except BaseException:
            self._free()
            raise

    def _start(self, host: str, port: int, local: Optional[str], name: str, choices: Tuple[Any, ...]) -> None:
        ca, insecure, scheduler, congestion, path_hints = choices
        transport, options = TransportConfig(), ClientOptions()
        check(LIBRARY.hvq_transport_config_init(ctypes.byref(transport), ctypes.sizeof(transport)))
        transport.scheduler, transport.congestion = scheduler.encode(), congestion.encode()
        transport.path_hints = int(path_hints)
        check(LIBRARY.hvq_client_options_init(ctypes.byref(options), ctypes.sizeof(options)))
        protocols = (ctypes.c_char_p * 1)(self._alpn.encode())
        options.transport, options.alpn, options.alpn_count = ctypes.pointer(transport), protocols, 1
        options.ca_file, options.insecure = ca and str(ca).encode(), int(insecure)
        check(LIBRARY.hvq_client_config_new(ctypes.byref(options), ctypes.byref(self._config)))
        check(LIBRARY.hvq_endpoint_new(None, ctypes.byref(self._endpoint)))
        start = ConnectOptions(self._config, name.encode(), self._route(local, (host, port)))
        started = LIBRARY.hvq_endpoint_connect(
            self._endpoint, ctypes.byref(start), self._now(), ctypes.byref(self._id)
        )
        check(started)
        self._authority = f"{name}:{port}"

    @staticmethod
    def _now() -> int:
        return time.monotonic_ns()

    def _route(self, local: Optional[str], remote: Tuple[str, int]) -> Route:
        """Binds a socket for a route."""
        family, kind, _, _, place = socket.getaddrinfo(remote[0], remote[1], type=socket.SOCK_DGRAM)[0]
        bound = socket.socket(family, kind)
        bound.setblocking(False)
        if local:
            bound.bind((local, 0))
        # A connected socket knows from which address it sends.
        bound.connect(place[:2])
        here = bound.getsockname()
        key = (here[0], here[1])
        there = _Remote(str(place[0]), int(place[1]))
        self._sockets[key] = (bound, here, there)
        return Route(address(*key), address(there.host, there.port))

    # The loop.

    def _run(self, until: Callable[[], bool], timeout: Optional[float] = None) -> None:
        """Does I/O until a condition holds."""
        last = time.monotonic() + (self.timeout if timeout is None else timeout)
        output = Output()
        while True:
            check(LIBRARY.hvq_endpoint_poll(self._endpoint, self._now(), ctypes.byref(output)))
            if output.kind == TRANSMIT:
                self._send(output.transmit)
            elif output.kind == EVENT:
                self._take(output.event)
            elif until():
                return
            elif self._closed is not None:
                raise ConnectionClosed(self._closed)
            elif output.kind == IDLE:
                self._wait(output.deadline, last)

    def _wait(self, deadline: int, last: float) -> None:
        seconds = last - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the peer took too long")
        if deadline != NEVER:
            seconds = min(seconds, max(0.0, (deadline - self._now()) / 1e9))
        sockets = [entry[0] for entry in self._sockets.values()]
        ready, _, _ = select.select(sockets, [], [], seconds)
        for bound in ready:
            self._receive(bound)

    def _receive(self, bound: socket.socket) -> None:
        here = bound.getsockname()
        remote = self._sockets[here[0], here[1]][2]
        incoming = Incoming()
        incoming.route = Route(address(here[0], here[1]), address(remote.host, remote.port))
        while True:
            try:
                data = bound.recv(65536)
            except (BlockingIOError, ConnectionRefusedError):
                return
            incoming.bytes, incoming.length = data, len(data)
            check(LIBRARY.hvq_endpoint_handle(self._endpoint, ctypes.byref(incoming), self._now()))

    def _send(self, transmit: Any) -> None:
        here = transmit.route.local
        data = ctypes.string_at(transmit.bytes, transmit.length)
        for (_, port), (bound, _, _) in self._sockets.items():
            if port == here.port and text(here) == bound.getsockname()[0]:
                try:
                    bound.send(data)
                except OSError:
                    pass  # Lost, as on any network.

    def _take(self, event: Any) -> None:
        kind = event.kind
        if kind == CONNECTED:
            self._connected = True
        elif kind == CLOSED:
            self._closed = event.bytes.copy().decode(errors="replace")
        elif kind == PATH_AVAILABLE:
            self._open_paths()
        elif kind == PATH_VALIDATED and event.path > 0:
            self._validated.add(event.path)
        elif kind == PATH_FAILED:
            self._failed.add(event.path)
        elif kind == STREAM_OPENED:
            stream = Stream()
            while LIBRARY.hvq_stream_accept(self._endpoint, self._id, event.direction, ctypes.byref(stream)) == OK:
                pass
        elif kind == READABLE:
            self._read(event.stream)

    def _open_paths(self) -> None:
        path = Path()
        while self._wanted_left():
            route, hints = self._wanted[self._opened]
            opened = LIBRARY.hvq_path_open(
                self._endpoint, self._id, ctypes.byref(route), self._now(), ctypes.byref(path)
            )
            if opened != OK:
                return
            if hints is not None:
                check(LIBRARY.hvq_path_set_hints(self._endpoint, path, ctypes.byref(hints)))
            self._opened += 1

    _opened = 0

    def _wanted_left(self) -> bool:
        return self._opened < len(self._wanted)

    # Streams.

    def _read(self, number: int) -> None:
        kept = self._incoming.get(number)
        chunk = Bytes()
        stream = Stream(self._id, number)
        while True:
            result = LIBRARY.hvq_stream_read_chunk(self._endpoint, stream, 1 << 16, ctypes.byref(chunk))
            if result == OK:
                if kept is not None:
                    kept.data += chunk.copy()
                continue
            if kept is not None:
                kept.ended = result == END
                if result not in (END, BLOCKED):
                    kept.failure = error(result)
            return

    def _open(self, direction: int) -> Stream:
        stream = Stream()

        def opened() -> bool:
            result = LIBRARY.hvq_stream_open(self._endpoint, self._id, direction, ctypes.byref(stream))
            if result not in (OK, BLOCKED):
                raise error(result)
            return bool(result == OK)

        self._run(opened)
        return stream

    def _write(self, stream: Stream, data: bytes, finish: bool = True) -> None:
        sent = ctypes.c_size_t()
        rest = bytes(data)
        while rest:
            result = LIBRARY.hvq_stream_write(self._endpoint, stream, rest, len(rest), ctypes.byref(sent))
            if result == BLOCKED:
                self._run(lambda: self._room(stream))
                continue
            check(result)
            rest = rest[sent.value :]
        if finish:
            check(LIBRARY.hvq_stream_finish(self._endpoint, stream))

    def _room(self, stream: Stream) -> bool:
        nothing = ctypes.c_size_t()
        return bool(LIBRARY.hvq_stream_write(self._endpoint, stream, b"", 0, ctypes.byref(nothing)) == OK)

    def _await_end(self, stream: Stream) -> bytes:
        kept = self._incoming[stream.id]
        self._run(lambda: kept.ended or kept.failure is not None)
        del self._incoming[stream.id]
        if kept.failure:
            raise kept.failure
        return bytes(kept.data)

    def exchange(self, data: bytes, urgency: int = 3) -> bytes:
        """Sends bytes on a stream of its own and returns what the server sends back until it ends the stream."""
        stream = self._open(BIDIRECTIONAL)
        self._incoming[stream.id] = _Incoming()
        check(LIBRARY.hvq_stream_set_priority(self._endpoint, stream, urgency, 0))
        self._write(stream, data)
        return self._await_end(stream)

    # HTTP/3 (RFC 9114).

    def get(self, path: str = "/", urgency: int = 3, headers: Sequence[Tuple[str, str]] = ()) -> Response:
        """Fetches a path over HTTP/3, with an urgency of RFC 9218 from 0 to 7."""
        if not self._http:
            self._http = True
            self._write(self._open(UNIDIRECTIONAL), opening(), finish=False)
        begin = time.monotonic()
        found = response(self.exchange(get_request(self._authority, path, urgency, headers), urgency))
        found.seconds = time.monotonic() - begin
        return found

    # Paths, and the end.

    def set_hints(self, path: int = 0, **hints: Any) -> None:
        """Says what is known of the channel of the path with the number `path`, in place of what was said before.

        `rate` and `rate_back` are bits per second of what this end and the server send, `delay` seconds one way, `loss` a
        share from 0 to 1, `price` that of a byte in any unit, `sharing` one of "shared", "endpoint" and "dedicated",
        `metered` true or false.
        """
        check(LIBRARY.hvq_path_set_hints(self._endpoint, Path(self._id, path), ctypes.byref(hints_from(**hints))))
        self._run(lambda: True)

    def peer_hints(self, path: int = 0) -> Dict[str, Any]:
        """What the server told of the channel of a path: a dict with the arguments of `set_hints` that are known."""
        told = Hints()
        check(LIBRARY.hvq_path_get_peer_hints(self._endpoint, Path(self._id, path), ctypes.byref(told)))
        return hints_told(told)

    def paths(self) -> List[PathInfo]:
        """Snapshots of the open paths."""
        room, count = (PathStatistics * 64)(), ctypes.c_size_t()
        check(LIBRARY.hvq_path_list(self._endpoint, self._id, room, 64, ctypes.byref(count)))
        return [path_info(room[index]) for index in range(count.value)]

    def close(self, code: int = 0x100) -> None:
        """Closes the connection; 0x100 is HTTP/3's way to say that all is well."""
        if not self._endpoint:
            return
        LIBRARY.hvq_connection_close(self._endpoint, self._id, code, None, self._now())
        try:
            self._run(lambda: self._closed is not None, timeout=1.0)
        except (ConnectionClosed, TimeoutError):
            pass
        self._free()

    def _free(self) -> None:
        if self._endpoint:
            LIBRARY.hvq_endpoint_free(self._endpoint)
            self._endpoint = ctypes.c_void_p()
        if self._config:
            LIBRARY.hvq_client_config_free(self._config)
            self._config = ctypes.c_void_p()
        for bound, _, _ in self._sockets.values():
            bound.close()
        self._sockets = {}

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


@dataclass
class _Remote:
    host: str
    port: int
