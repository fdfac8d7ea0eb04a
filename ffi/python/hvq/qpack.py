"""Header fields of HTTP/3 without a dynamic table (RFC 9204): all that a client needs that announces none."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

# The static table (RFC 9204, appendix A).
STATIC = [
    (':authority', ''), (':path', '/'), ('age', '0'), ('content-disposition', ''), ('content-length', '0'),
    ('cookie', ''), ('date', ''), ('etag', ''), ('if-modified-since', ''), ('if-none-match', ''),
    ('last-modified', ''), ('link', ''), ('location', ''), ('referer', ''), ('set-cookie', ''), (':method',
    'CONNECT'), (':method', 'DELETE'), (':method', 'GET'), (':method', 'HEAD'), (':method', 'OPTIONS'),
    (':method', 'POST'), (':method', 'PUT'), (':scheme', 'http'), (':scheme', 'https'), (':status', '103'),
    (':status', '200'), (':status', '304'), (':status', '404'), (':status', '503'), ('accept', '*/*'),
    ('accept', 'application/dns-message'), ('accept-encoding', 'gzip, deflate, br'), ('accept-ranges', 'bytes'),
    ('access-control-allow-headers', 'cache-control'), ('access-control-allow-headers', 'content-type'),
    ('access-control-allow-origin', '*'), ('cache-control', 'max-age=0'), ('cache-control', 'max-age=2592000'),
    ('cache-control', 'max-age=604800'), ('cache-control', 'no-cache'), ('cache-control', 'no-store'),
    ('cache-control', 'public, max-age=31536000'), ('content-encoding', 'br'), ('content-encoding', 'gzip'),
    ('content-type', 'application/dns-message'), ('content-type', 'application/javascript'), ('content-type',
    'application/json'), ('content-type', 'application/x-www-form-urlencoded'), ('content-type', 'image/gif'),
    ('content-type', 'image/jpeg'), ('content-type', 'image/png'), ('content-type', 'text/css'),
    ('content-type', 'text/html; charset=utf-8'), ('content-type', 'text/plain'), ('content-type',
    'text/plain;charset=utf-8'), ('range', 'bytes=0-'), ('strict-transport-security', 'max-age=31536000'),
    ('strict-transport-security', 'max-age=31536000; includesubdomains'), ('strict-transport-security',
    'max-age=31536000; includesubdomains; preload'), ('vary', 'accept-encoding'), ('vary', 'origin'),
    ('x-content-type-options', 'nosniff'), ('x-xss-protection', '1; mode=block'), (':status', '100'),
    (':status', '204'), (':status', '206'), (':status', '302'), (':status', '400'), (':status', '403'),
    (':status', '421'), (':status', '425'), (':status', '500'), ('accept-language', ''),
    ('access-control-allow-credentials', 'FALSE'), ('access-control-allow-credentials', 'TRUE'),
    ('access-control-allow-headers', '*'), ('access-control-allow-methods', 'get'),
    ('access-control-allow-methods', 'get, post, options'), ('access-control-allow-methods', 'options'),
    ('access-control-expose-headers', 'content-length'), ('access-control-request-headers', 'content-type'),
    ('access-control-request-method', 'get'), ('access-control-request-method', 'post'), ('alt-svc', 'clear'),
    ('authorization', ''), ('content-security-policy', "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ('early-data', '1'), ('expect-ct', ''), ('forwarded', ''), ('if-range', ''), ('origin', ''), ('purpose',
    'prefetch'), ('server', ''), ('timing-allow-origin', '*'), ('upgrade-insecure-requests', '1'),
    ('user-agent', ''), ('x-forwarded-for', ''), ('x-frame-options', 'deny'), ('x-frame-options', 'sameorigin'),
]

# The lengths of Huffman codes in bits, the end of the string last (RFC 7541, appendix B). The codes of one length follow
# each other in the order of their symbols, so that the lengths say it all.
LENGTHS = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
    28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
    8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
    13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
    28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
    22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
    22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
    25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
]


def _codes() -> Any:
    codes, code, before = {}, 0, 0
    for symbol in sorted(range(len(LENGTHS)), key=lambda symbol: (LENGTHS[symbol], symbol)):
        code <<= LENGTHS[symbol] - before
        before = LENGTHS[symbol]
        codes[before, code] = symbol
        code += 1
    return codes


CODES = _codes()


class Malformed(Exception):
    """The peer sent something that is no field section."""


def integer(value: int, prefix: int, first: int = 0) -> bytes:
    """Encodes an integer with a prefix of so many bits below the bits of `first` (RFC 7541, section 5.1)."""
    limit = (1 << prefix) - 1
    if value < limit:
        return bytes([first | value])
    encoded = bytearray([first | limit])
    value -= limit
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode(fields: Sequence[Tuple[str, str]]) -> bytes:
    """Encodes pairs of text as a field section: names and values as they are, or by their place in the static table."""
    section = bytearray(b"\x00\x00")
    names = {name: index for index, (name, _) in reversed(list(enumerate(STATIC)))}
    for name, value in fields:
        raw = value.encode()
        if (name, value) in STATIC:
            section += integer(STATIC.index((name, value)), 6, 0xC0)
            continue
        if name in names:
            section += integer(names[name], 4, 0x50)
        else:
            section += integer(len(name), 3, 0x20) + name.encode()
        section += integer(len(raw), 7) + raw
    return bytes(section)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise Malformed("a field section that is cut off")
        self.at += 1
        return self.data[self.at - 1]

    def integer(self, prefix: int, first: int) -> int:
        limit = (1 << prefix) - 1
        value, shift = first & limit, 0
        if value < limit:
            return value
        while True:
            byte = self.byte()
            value += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 56:
                raise Malformed("an integer beyond all limits")

    def string(self, prefix: int, first: int) -> str:
        length = self.integer(prefix, first)
        raw = self.data[self.at : self.at + length]
        if len(raw) < length:
            raise Malformed("a string that is cut off")
        self.at += length
        return (huffman(raw) if first >> prefix & 1 else bytes(raw)).decode("latin-1")


def huffman(raw: bytes) -> bytes:
    """Decodes a string of Huffman codes (RFC 7541, section 5.2)."""
    decoded, code, length = bytearray(), 0, 0
    for byte in raw:
        for bit in range(7, -1, -1):
            code, length = code << 1 | byte >> bit & 1, length + 1
            symbol = CODES.get((length, code))
            if symbol == 256 or length > 30:
                raise Malformed("a Huffman code that stands for nothing")
            if symbol is not None:
                decoded.append(symbol)
                code, length = 0, 0
    if length > 7 or code != (1 << length) - 1:
        raise Malformed("wrong padding of a Huffman string")
    return bytes(decoded)


def decode(data: bytes) -> List[Tuple[str, str]]:
    """Decodes a field section into pairs of text."""
    reader, fields = _Reader(data), []
    if reader.integer(8, reader.byte()) != 0:
        raise Malformed("a reference to a dynamic table, which there is not")
    reader.integer(7, reader.byte())
    while reader.at < len(data):
        first = reader.byte()
        if first & 0xC0 == 0xC0:
            fields.append(_static(reader.integer(6, first)))
        elif first & 0xD0 == 0x50:
            name = _static(reader.integer(4, first))[0]
            fields.append((name, reader.string(7, reader.byte())))
        elif first & 0xE0 == 0x20:
            name = reader.string(3, first)
            fields.append((name, reader.string(7, reader.byte())))
        else:
            raise Malformed("a reference to a dynamic table, which there is not")
    return fields


def _static(index: int) -> Tuple[str, str]:
    if index >= len(STATIC):
        raise Malformed("beyond the static table")
    return STATIC[index]
