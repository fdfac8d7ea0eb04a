"""Requests and responses as bytes of a stream (RFC 9114)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, List, Sequence, Tuple

from . import qpack

DATA, HEADERS, SETTINGS = 0, 1, 4


@dataclass
class Response:
    """What a server answered."""

    status: int
    headers: List[Tuple[str, str]]
    body: bytes
    seconds: float = 0.0


def opening() -> bytes:
    """The beginning of the control stream: its type, and settings that promise nothing."""
    return b"\x00" + varint(SETTINGS) + varint(0)


def get_request(
    authority: str, path: str = "/", urgency: int = 3, headers: Sequence[Tuple[str, str]] = ()
) -> bytes:
    """The request for a path, with an urgency of RFC 9218 from 0 to 7."""
    fields = [
        (":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", path),
        ("user-agent", "hvq-python"), ("priority", f"u={urgency}"), *headers,
    ]
    section = qpack.encode(fields)
    return varint(HEADERS) + varint(len(section)) + section


def varint(value: int) -> bytes:
    """An integer of QUIC (RFC 9000, section 16)."""
    for length, mark in ((1, 0x00), (2, 0x40), (4, 0x80), (8, 0xC0)):
        if value < 1 << (8 * length - 2):
            encoded = bytearray(value.to_bytes(length, "big"))
            encoded[0] |= mark
            return bytes(encoded)
    raise ValueError("beyond 2^62")


def _frames(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """The frames of a stream, each its type and its payload."""
    at = 0
    while at < len(data):
        kind, at = _read_varint(data, at)
        length, at = _read_varint(data, at)
        if at + length > len(data):
            raise qpack.Malformed("a frame that is cut off")
        yield kind, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> Tuple[int, int]:
    if at >= len(data):
        raise qpack.Malformed("an integer that is cut off")
    length = 1 << (data[at] >> 6)
    if at + length > len(data):
        raise qpack.Malformed("an integer that is cut off")
    value = int.from_bytes(data[at : at + length], "big") & (1 << (8 * length - 2)) - 1
    return value, at + length


def response(data: bytes) -> Response:
    """The final response of a stream; interim ones and trailers are left out."""
    status: int | None = None
    fields: List[Tuple[str, str]] = []
    body = bytearray()
    for kind, payload in _frames(data):
        if kind == HEADERS and (status is None or status < 200):
            fields = qpack.decode(payload)
            status = int(dict(fields).get(":status", "0"))
        elif kind == DATA:
            body += payload
    if status is None:
        raise qpack.Malformed("a response without a status")
    return Response(status, [(name, value) for name, value in fields if name != ":status"], bytes(body))
