"""A session of WebTransport with aioquic: aioquic_web_transport.py PORT CERTIFICATE. Echoes in each way, and prints what came back."""

import asyncio
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamDataReceived


class Client(QuicConnectionProtocol):
    """One session on one connection."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic, enable_webtransport=True)
        self.heard = asyncio.Queue()
        self.texts = {}
        # aioquic takes what comes on these for frames of HTTP/3.
        self.own = set()

    async def session(self, authority):
        """Asks for a session and waits for the answer; returns its ID and the status."""
        stream = self._quic.get_next_available_stream_id()
        head = {
            ":method": "CONNECT",
            ":scheme": "https",
            ":authority": authority,
            ":path": "/echo",
            ":protocol": "webtransport",
        }
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in head.items()])
        self.transmit()
        return stream, await self.heard.get()

    def say(self, session, is_unidirectional, text):
        """Sends `text` on a stream of its own."""
        stream = self.http.create_webtransport_stream(session, is_unidirectional=is_unidirectional)
        if not is_unidirectional:
            self.own.add(stream)
        self._quic.send_stream_data(stream, text, end_stream=True)
        self.transmit()

    def quic_event_received(self, event):
        """Called by aioquic for everything that happens."""
        if isinstance(event, ConnectionTerminated):
            self.heard.put_nowait(f"the connection ended: {event.error_code:#x} {event.reason_phrase}")
        if isinstance(event, StreamDataReceived) and event.stream_id in self.own:
            self.take(event.stream_id, event.data, event.end_stream)
            return
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived):
                self.heard.put_nowait(dict(happened.headers)[b":status"].decode())
            elif isinstance(happened, DatagramReceived):
                self.heard.put_nowait(happened.data.decode())
            elif isinstance(happened, WebTransportStreamDataReceived):
                self.take(happened.stream_id, happened.data, happened.stream_ended)

    def take(self, stream, data, is_end):
        """Keeps what came on a stream until its end."""
        self.texts[stream] = self.texts.get(stream, b"") + data
        if is_end:
            self.heard.put_nowait(self.texts[stream].decode())


async def main():
    """Echoes, and prints."""
    port, certificate = sys.argv[1:]
    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, server_name="localhost", max_datagram_frame_size=65536
    )
    configuration.load_verify_locations(cafile=certificate)
    async with connect("127.0.0.1", int(port), configuration=configuration, create_protocol=Client) as client:
        # The server's SETTINGS come first (draft-ietf-webtrans-http3 §4.6).
        while client.http.received_settings is None:
            await asyncio.sleep(0.01)
        session, status = await client.session(f"localhost:{port}")
        said = [status]
        client.say(session, False, b"bidirectional")
        said.append(await client.heard.get())
        client.say(session, True, b"unidirectional")
        said.append(await client.heard.get())
        client.http.send_datagram(session, b"datagram")
        client.transmit()
        said.append(await client.heard.get())
        print("-".join(said))


asyncio.run(main())
