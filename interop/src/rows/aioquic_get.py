"""Fetches a path over HTTP/3 with aioquic and prints what arrived as JSON: aioquic_get.py PORT PATH CERTIFICATE."""

import asyncio
import hashlib
import json
import sys

import aioquic
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset


class Client(QuicConnectionProtocol):
    """One request on one connection."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.done = asyncio.get_running_loop().create_future()
        self.status = 0
        self.length = 0
        self.digest = hashlib.sha256()

    async def get(self, authority, path):
        """Sends the request and waits for the end of the response."""
        stream = self._quic.get_next_available_stream_id()
        head = {":method": "GET", ":scheme": "https", ":authority": authority, ":path": path}
        fields = [(name.encode(), value.encode()) for name, value in head.items()]
        self.http.send_headers(stream, fields, end_stream=True)
        self.transmit()
        await self.done

    def quic_event_received(self, event):
        """Called by aioquic for everything that happens."""
        if isinstance(event, ConnectionTerminated):
            self.fail(f"the connection ended: {event.error_code:#x} {event.reason_phrase}")
        elif isinstance(event, StreamReset):
            self.fail(f"the stream was reset: {event.error_code:#x}")
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived):
                self.status = int(dict(happened.headers)[b":status"])
            elif isinstance(happened, DataReceived):
                self.length += len(happened.data)
                self.digest.update(happened.data)
            if getattr(happened, "stream_ended", False) and not self.done.done():
                self.done.set_result(None)

    def fail(self, reason):
        """Ends the wait for the response with an error."""
        if not self.done.done():
            self.done.set_exception(RuntimeError(reason))


async def main():
    """Fetches, and prints."""
    port, path, certificate = sys.argv[1:]
    configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, server_name="localhost")
    configuration.load_verify_locations(cafile=certificate)
    async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
        await client.get(f"localhost:{port}", path)
        result = {
            "version": aioquic.__version__,
            "status": client.status,
            "bytes": client.length,
            "sha256": client.digest.hexdigest(),
        }
    print(json.dumps(result))


asyncio.run(main())
