"""The 13 checks of aioquic's interop program, against servers of hvq: prints an object of JSON for each.

aioquic_checks.py PORT_HTTP3 PORT_HQ PORT_RETRY PORT_SLOW CERTIFICATE KEY

PORT_SLOW leads to the HTTP/3 server over a link of 10 Mbit/s, on which it is compared with HTTP over TCP.
"""

import asyncio
import http.server
import json
import ssl
import sys
import threading
import time
import urllib.request

import aioquic
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.logger import QuicLogger

HQ_ALPN = ["hq-interop"]
HOST = "127.0.0.1"
PATIENCE = 60
# A version that is reserved so that nobody ever speaks it (RFC 9000 §15).
RESERVED = 0x1A2A3A4A
# Payload of TCP over the slow link: 1448 bytes of each 1500.
TCP_RATE = 10_000_000 / 8 * 1448 / 1500
SIZES = [5_000_000, 10_000_000]


class Client(QuicConnectionProtocol):
    """Asks for files over HTTP/0.9 or HTTP/3."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = None
        if self._quic.configuration.alpn_protocols == H3_ALPN:
            self.http = H3Connection(self._quic)
        self.waiting = {}

    async def get(self, path):
        """The status (200 for HTTP/0.9, which has none) and the bytes of the answer."""
        stream = self._quic.get_next_available_stream_id()
        self.waiting[stream] = [200, 0, asyncio.get_running_loop().create_future()]
        if self.http is None:
            self._quic.send_stream_data(stream, f"GET {path}\r\n".encode(), end_stream=True)
        else:
            head = {":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": path}
            fields = [(name.encode(), value.encode()) for name, value in head.items()]
            self.http.send_headers(stream, fields, end_stream=True)
        self.transmit()
        await self.waiting[stream][2]
        return self.waiting[stream][:2]

    def quic_event_received(self, event):
        """Called by aioquic for everything that happens."""
        if self.http is not None:
            for happened in self.http.handle_event(event):
                if isinstance(happened, HeadersReceived):
                    self.waiting[happened.stream_id][0] = int(dict(happened.headers)[b":status"])
                elif isinstance(happened, DataReceived):
                    self.receive(happened.stream_id, happened.data, happened.stream_ended)
        elif isinstance(event, StreamDataReceived):
            self.receive(event.stream_id, event.data, event.end_stream)

    def receive(self, stream, data, ended):
        """Takes a piece of an answer."""
        entry = self.waiting[stream]
        entry[1] += len(data)
        if ended and not entry[2].done():
            entry[2].set_result(None)


class Checks:
    """The checks; each gives the letters that it earned."""

    def __init__(self, ports, certificate, key):
        self.http3, self.hq, self.retry, self.slow = ports
        self.certificate, self.key = certificate, key

    def configuration(self, protocols=H3_ALPN):
        """A client's configuration that keeps a log."""
        made = QuicConfiguration(is_client=True, alpn_protocols=protocols, quic_logger=QuicLogger())
        made.load_verify_locations(cafile=self.certificate)
        made.server_name = "localhost"
        return made

    async def version_negotiation(self):
        """V: a version that the server does not know is answered with Version Negotiation, and then it works."""
        made = self.configuration()
        made.supported_versions.insert(0, RESERVED)
        async with connect(HOST, self.http3, configuration=made) as client:
            await client.ping()
            return "V" if received(made, "version_negotiation") else ""

    async def handshake_and_close(self):
        """H, C: a handshake, and an orderly end."""
        async with connect(HOST, self.http3, configuration=self.configuration()) as client:
            await client.ping()
        return "HC"

    async def stateless_retry(self):
        """S: the server sends a Retry."""
        made = self.configuration()
        async with connect(HOST, self.retry, configuration=made) as client:
            await client.ping()
            return "S" if received(made, "retry") else ""

    async def quantum_readiness(self):
        """Q: the ClientHello is larger than a datagram."""
        made = self.configuration()
        made.quantum_readiness_test = True
        async with connect(HOST, self.http3, configuration=made) as client:
            await client.ping()
        return "Q"

    async def http_0(self):
        """D: data over HTTP/0.9."""
        made = self.configuration(HQ_ALPN)
        async with connect(HOST, self.hq, configuration=made, create_protocol=Client) as client:
            _, length = await client.get("/small")
            return "D" if length else ""

    async def http_3(self):
        """3: data over HTTP/3. (d, dynamic QPACK tables, and p, push, are not in the h3 crate.)"""
        made = self.configuration()
        async with connect(HOST, self.http3, configuration=made, create_protocol=Client) as client:
            answers = [await client.get("/small") for _ in range(3)]
            return "3" if all(status == 200 and length for status, length in answers) else ""

    async def session_resumption(self):
        """R, Z: the session is resumed, and 0-RTT is accepted."""
        made, tickets = self.configuration(), []
        options = {"configuration": made, "session_ticket_handler": tickets.append}
        async with connect(HOST, self.http3, **options) as client:
            await client.ping()
            await asyncio.sleep(0.5)
        made.session_ticket = tickets[-1]
        async with connect(HOST, self.http3, configuration=made) as client:
            await client.ping()
            tls = client._quic.tls
            return ("R" if tls.session_resumed else "") + ("Z" if tls.early_data_accepted else "")

    async def key_update(self):
        """U: packets go on after a key update."""
        async with connect(HOST, self.http3, configuration=self.configuration()) as client:
            await client.ping()
            client.request_key_update()
            await client.ping()
        return "U"

    async def server_cid_change(self):
        """M: the client changes the server's connection ID."""
        async with connect(HOST, self.http3, configuration=self.configuration()) as client:
            await client.ping()
            client.change_connection_id()
            await client.ping()
        return "M"

    async def nat_rebinding(self):
        """B: packets come from another port, and the server validates it."""
        return "B" if await self.moved(change_id=False) else ""

    async def address_mobility(self):
        """A: the same, with another connection ID."""
        return "A" if await self.moved(change_id=True) else ""

    async def moved(self, *, change_id):
        """Whether the server validates the client's new port."""
        made = self.configuration()
        async with connect(HOST, self.http3, configuration=made) as client:
            await client.ping()
            client._transport.close()
            loop = asyncio.get_running_loop()
            await loop.create_datagram_endpoint(lambda: client, local_addr=("::", 0))
            if change_id:
                client.change_connection_id()
            await client.ping()
            return any(
                frame["frame_type"] == "path_challenge"
                for event in events(made, "transport:packet_received")
                for frame in event["data"].get("frames", [])
            )

    async def spin_bit(self):
        """P: the spin bit takes both values. One path in sixteen never spins (RFC 9000 §17.4), hence several attempts."""
        for _ in range(5):
            made = self.configuration()
            async with connect(HOST, self.http3, configuration=made) as client:
                for _ in range(5):
                    await client.ping()
                states = {event["data"]["state"] for event in events(made, "connectivity:spin_bit_updated")}
                if len(states) == 2:
                    return "P"
        return ""

    async def throughput(self):
        """T: a download takes at most a tenth longer than over TCP."""
        for size in SIZES:
            started = time.monotonic()
            length = await asyncio.to_thread(over_tcp, size, self.certificate, self.key)
            assert length == size, "TCP"
            tcp, started = time.monotonic() - started, time.monotonic()
            made = self.configuration()
            async with connect(HOST, self.slow, configuration=made, create_protocol=Client) as client:
                status, length = await client.get(f"/{size}")
                quic = time.monotonic() - started
            if status != 200 or length != size or quic > 1.1 * tcp:
                raise RuntimeError(f"{size} bytes: {quic:.2f} s over QUIC, {tcp:.2f} s over TCP")
        return "T"


def events(made, name):
    """The events of this name in a connection's log."""
    return [event for event in made.quic_logger.to_dict()["traces"][0]["events"] if event["name"] == name]


def received(made, kind):
    """Whether a packet of this kind was received."""
    packets = events(made, "transport:packet_received")
    return any(event["data"]["header"]["packet_type"] == kind for event in packets)


class Paced(http.server.BaseHTTPRequestHandler):
    """Sends as many bytes as the path says, as fast as the slow link lets TCP."""

    def do_GET(self):
        """Answers."""
        length, started, sent = int(self.path[1:]), time.monotonic(), 0
        self.send_response(200)
        self.send_header("content-length", str(length))
        self.end_headers()
        while sent < length:
            piece = min(14_480, length - sent)
            self.wfile.write(bytes(piece))
            sent += piece
            time.sleep(max(0, started + sent / TCP_RATE - time.monotonic()))

    def log_message(self, *_):
        """Says nothing."""


def over_tcp(size, certificate, key):
    """Downloads so many bytes over TCP and TLS at the rate of the slow link."""
    server = http.server.HTTPServer((HOST, 0), Paced)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.handle_request, daemon=True).start()
    trust = ssl.create_default_context(cafile=certificate)
    with urllib.request.urlopen(f"https://{HOST}:{server.server_port}/{size}", context=trust) as answer:
        return len(answer.read())


CHECKS = [
    ("version_negotiation", "V"),
    ("handshake_and_close", "HC"),
    ("stateless_retry", "S"),
    ("quantum_readiness", "Q"),
    ("http_0", "D"),
    ("http_3", "3"),
    ("session_resumption", "RZ"),
    ("key_update", "U"),
    ("server_cid_change", "M"),
    ("nat_rebinding", "B"),
    ("address_mobility", "A"),
    ("spin_bit", "P"),
    ("throughput", "T"),
]


def main():
    """Runs all checks."""
    checks = Checks([int(port) for port in sys.argv[1:5]], *sys.argv[5:])
    for name, letters in CHECKS:
        reason = None
        try:
            earned = asyncio.run(asyncio.wait_for(getattr(checks, name)(), PATIENCE))
        except Exception as error:
            earned, reason = "", f"{type(error).__name__}: {error}"
        what = getattr(Checks, name).__doc__.split(": ", 1)[1]
        result = {"check": name, "letters": letters, "earned": earned, "reason": reason, "what": what}
        print(json.dumps(result | {"version": aioquic.__version__}), flush=True)


main()
