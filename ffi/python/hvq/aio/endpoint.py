"""An endpoint of the library with sockets and a timer of asyncio."""

from __future__ import annotations

import asyncio
import ctypes
import socket
import time
from typing import Any, Callable, Dict, Optional, Tuple

from ..library import (
    EVENT, IDLE, LIBRARY, NEVER, TRANSMIT, Incoming, Output, Route, address, check,
)
from ..paths import text

Address = Tuple[str, int]
# Datagrams read from a socket at a time, so that one busy socket leaves time for everything else.
AT_A_TIME = 64


def now() -> int:
    """The time of endpoints, in nanoseconds."""
    return time.monotonic_ns()


def lookup(host: str, port: int) -> Tuple[int, Address]:
    """The family and the first address of a host, looked up where it is a name."""
    family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    return family, (str(place[0]), int(place[1]))


class Endpoint:
    """Moves datagrams and time. `on_event` is called with every event, which is valid during the call."""

    def __init__(self, pointer: ctypes.c_void_p, on_event: Callable[[Any], None]) -> None:
        self.pointer = pointer
        self._on_event = on_event
        self._loop = asyncio.get_running_loop()
        self._sockets: Dict[Address, Tuple[socket.socket, Optional[Address]]] = {}
        self._timer: Optional[asyncio.TimerHandle] = None
        self._soon: Optional[asyncio.Handle] = None

    def bind(self, local: Address) -> Address:
        """Opens a socket at an address of this machine, not 0.0.0.0 or ::, and returns where it is."""
        family, place = lookup(*local)
        if place[0] in ("0.0.0.0", "::"):
            raise ValueError("a socket needs an address of this machine: what arrives must be told by its address")
        return self._keep(family, None, place)

    def bind_towards(self, remote: Address, local: Optional[str]) -> Tuple[Address, Address]:
        """Opens a socket from which `remote` is reached, bound to `local` or to what the system chooses; returns both addresses."""
        family, place = lookup(*remote)
        return self._keep(family, place, (local, 0) if local else None), place

    def _keep(self, family: int, remote: Optional[Address], local: Optional[Address]) -> Address:
        opened = socket.socket(family, socket.SOCK_DGRAM)
        try:
            opened.setblocking(False)
            if local:
                opened.bind(local)
            if remote:
                # A connected socket knows from which address it sends.
                opened.connect(remote)
        except OSError:
            opened.close()
            raise
        name = opened.getsockname()
        here = (str(name[0]), int(name[1]))
        self._sockets[here] = (opened, remote)
        self._loop.add_reader(opened, self._receive, opened, here, remote)
        return here

    def _receive(self, opened: socket.socket, here: Address, remote: Optional[Address]) -> None:
        incoming = Incoming()
        for _ in range(AT_A_TIME):
            try:
                data, sender = opened.recvfrom(65536)
            except BlockingIOError:
                break
            except OSError:
                # An ICMP error of an earlier datagram: QUIC notices by itself what is lost.
                continue
            there = remote or sender[:2]
            incoming.route = Route(address(*here), address(there[0].partition("%")[0], there[1]))
            incoming.bytes, incoming.length = data, len(data)
            check(LIBRARY.hvq_endpoint_handle(self.pointer, ctypes.byref(incoming), now()))
        self.pump()

    def pump_soon(self) -> None:
        """Has the endpoint polled after what else runs now: commands that follow each other share datagrams."""
        if self._soon is None:
            self._soon = self._loop.call_soon(self.pump)

    def pump(self) -> None:
        """Polls until nothing is left to be done, and sets the timer."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if not self.pointer:
            return
        output = Output()
        while True:
            check(LIBRARY.hvq_endpoint_poll(self.pointer, now(), ctypes.byref(output)))
            if output.kind == TRANSMIT:
                self._send(output.transmit)
            elif output.kind == EVENT:
                self._on_event(output.event)
            elif output.kind == IDLE:
                break
        self._set_timer(output.deadline)

    def _send(self, transmit: Any) -> None:
        route = transmit.route
        opened, connected = self._sockets.get((text(route.local), route.local.port), (None, None))
        if opened is None:
            return
        data = ctypes.string_at(transmit.bytes, transmit.length)
        size = transmit.segment or len(data)
        for at in range(0, len(data), size):
            try:
                if connected:
                    opened.send(data[at : at + size])
                else:
                    opened.sendto(data[at : at + size], (text(route.remote), route.remote.port))
            except OSError:
                pass  # Lost, as on any network.

    def _set_timer(self, deadline: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline != NEVER:
            seconds = max(0.0, (deadline - now()) / 1e9)
            self._timer = self._loop.call_later(seconds, self.pump)

    def close(self) -> None:
        """Closes the sockets and frees the endpoint. Peers are not told: connections are closed before."""
        for handle in (self._timer, self._soon):
            if handle is not None:
                handle.cancel()
        for opened, _ in self._sockets.values():
            self._loop.remove_reader(opened)
            opened.close()
        self._sockets.clear()
        if self.pointer:
            LIBRARY.hvq_endpoint_free(self.pointer)
            self.pointer = ctypes.c_void_p()
