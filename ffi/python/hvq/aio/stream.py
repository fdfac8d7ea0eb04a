"""Streams of a connection."""

from __future__ import annotations

import asyncio
import ctypes
from typing import TYPE_CHECKING, Any, AsyncIterator, Optional

from ..library import BLOCKED, END, LIBRARY, OK, RESET, STOPPED_ERROR, Bytes, check, error
from ..library import Stream as Number

if TYPE_CHECKING:
    from .connection import Connection

# The most bytes that one read returns.
MOST = 1 << 16


class StreamReset(Exception):
    """The peer gave up sending."""


class StreamStopped(Exception):
    """The peer wants no more of this stream."""


class Stream:
    """A stream, of one direction or both. Reading and writing wait while nothing is there, or while the peer is slow."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.id = number
        self._connection = connection
        self._name = Number(connection.number, number)
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._is_over = False

    @property
    def _endpoint(self) -> Any:
        return self._connection.endpoint

    def wake_reader(self) -> None:
        """Something arrived."""
        self._readable.set()

    def wake_writer(self) -> None:
        """There is room again."""
        self._writable.set()

    def wake(self) -> None:
        """The connection is over."""
        self._readable.set()
        self._writable.set()

    async def read(self, most: int = MOST) -> bytes:
        """Returns what arrived, at most `most` bytes, or b"" behind the end."""
        chunk = Bytes()
        while not self._is_over:
            self._readable.clear()
            self._connection.check_exists()
            result = LIBRARY.hvq_stream_read_chunk(self._endpoint.pointer, self._name, most, ctypes.byref(chunk))
            if result == OK:
                data: bytes = chunk.copy()
                self._endpoint.pump_soon()
                return data
            if result == END:
                self._is_over = True
            elif result == RESET:
                self._is_over = True
                raise StreamReset(f"stream {self.id}")
            else:
                # What arrived before the end of the connection was read first.
                self._connection.check_open()
                if result != BLOCKED:
                    raise error(result)
                await self._readable.wait()
        return b""

    async def read_all(self, limit: Optional[int] = None) -> bytes:
        """Returns everything up to the end; fails with ValueError beyond `limit` bytes."""
        data = bytearray()
        async for chunk in self:
            data += chunk
            if limit is not None and len(data) > limit:
                raise ValueError(f"more than {limit} bytes")
        return bytes(data)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self.read():
            yield chunk

    async def write(self, data: bytes) -> None:
        """Hands over all of `data`, waiting while there is no room."""
        rest, sent = memoryview(bytes(data)), ctypes.c_size_t()
        while rest:
            self._writable.clear()
            self._connection.check_open()
            result = LIBRARY.hvq_stream_write(
                self._endpoint.pointer, self._name, bytes(rest), len(rest), ctypes.byref(sent)
            )
            if result == BLOCKED:
                self._endpoint.pump_soon()
                await self._writable.wait()
            elif result == STOPPED_ERROR:
                raise StreamStopped(f"stream {self.id}")
            else:
                check(result)
                rest = rest[sent.value :]
        self._endpoint.pump_soon()

    def _command(self, result: int) -> None:
        check(result)
        self._endpoint.pump_soon()

    def finish(self) -> None:
        """Ends the sending direction behind what was written."""
        self._command(LIBRARY.hvq_stream_finish(self._endpoint.pointer, self._name))

    def reset(self, code: int = 0) -> None:
        """Gives up the sending direction."""
        self._command(LIBRARY.hvq_stream_reset(self._endpoint.pointer, self._name, code))

    def stop(self, code: int = 0) -> None:
        """Asks the peer to send no more."""
        self._command(LIBRARY.hvq_stream_stop(self._endpoint.pointer, self._name, code))

    def set_priority(self, urgency: int, incremental: bool = False) -> None:
        """Sets the urgency of what this end sends (RFC 9218): 0, the most urgent, to 7; 3 is the default."""
        self._command(
            LIBRARY.hvq_stream_set_priority(self._endpoint.pointer, self._name, urgency, int(incremental))
        )
