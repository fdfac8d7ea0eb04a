"""aioquic as an endpoint of the QUIC interop runner; everything it is to do is in the environment."""

import asyncio
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, StreamDataReceived, StreamReset
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite

HQ_ALPN = ["hq-interop"]
UNSUPPORTED = 127
TICKET_PATIENCE = 10
SIDES = {
    "client": "handshake transfer chacha20 keyupdate retry resumption zerortt http3 multiconnect v2".split(),
    "server": "handshake transfer chacha20 retry resumption zerortt http3 multiconnect v2".split(),
}


def content(path):
    """The file of this name that the server has, if there is one."""
    file = Path(os.environ["WWW"]) / Path(path).name
    return file.read_bytes() if file.is_file() else None


class Server(QuicConnectionProtocol):
    """Answers requests of HTTP/0.9 and HTTP/3."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = None
        self.requests = {}

    def quic_event_received(self, event):
        """Called by aioquic for everything that happens."""
        if isinstance(event, ProtocolNegotiated) and event.alpn_protocol in H3_ALPN:
            self.http = H3Connection(self._quic)
        if self.http is not None:
            for happened in self.http.handle_event(event):
                if isinstance(happened, HeadersReceived):
                    self.answer_http3(happened)
        elif isinstance(event, StreamDataReceived):
            request = self.requests.pop(event.stream_id, b"") + event.data
            if event.end_stream or request.endswith(b"\r\n"):
                if request:
                    self.answer(event.stream_id, request)
            else:
                self.requests[event.stream_id] = request

    def answer(self, stream, request):
        """Answers a request of HTTP/0.9."""
        body = content(request.decode().split()[1])
        if body is None:
            self._quic.reset_stream(stream, 1)
        else:
            self._quic.send_stream_data(stream, body, end_stream=True)

    def answer_http3(self, request):
        """Answers a request of HTTP/3."""
        body = content(dict(request.headers)[b":path"].decode())
        status = b"404" if body is None else b"200"
        self.http.send_headers(request.stream_id, [(b":status", status)])
        self.http.send_data(request.stream_id, body or b"", end_stream=True)


class Client(QuicConnectionProtocol):
    """Asks for files over HTTP/0.9 or HTTP/3."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = None
        if self._quic.configuration.alpn_protocols == H3_ALPN:
            self.http = H3Connection(self._quic)
        self.bodies = {}
        self.done = {}

    def ask(self, url):
        """Sends a request; the answer is the result of the future returned."""
        parts = urlsplit(url)
        stream = self._quic.get_next_available_stream_id()
        if self.http is None:
            self._quic.send_stream_data(stream, f"GET {parts.path}\r\n".encode(), end_stream=True)
        else:
            head = {":method": "GET", ":scheme": "https", ":authority": parts.netloc, ":path": parts.path}
            fields = [(name.encode(), value.encode()) for name, value in head.items()]
            self.http.send_headers(stream, fields, end_stream=True)
        self.bodies[stream] = bytearray()
        self.done[stream] = asyncio.get_running_loop().create_future()
        return self.done[stream]

    def quic_event_received(self, event):
        """Called by aioquic for everything that happens."""
        if isinstance(event, (ConnectionTerminated, StreamReset)):
            for done in self.done.values():
                if not done.done():
                    done.set_exception(RuntimeError(str(event)))
        elif self.http is not None:
            for happened in self.http.handle_event(event):
                if isinstance(happened, DataReceived):
                    self.receive(happened.stream_id, happened.data, happened.stream_ended)
        elif isinstance(event, StreamDataReceived):
            self.receive(event.stream_id, event.data, event.end_stream)

    def receive(self, stream, data, ended):
        """Takes a piece of an answer."""
        if stream in self.bodies:
            self.bodies[stream] += data
            if ended and not self.done[stream].done():
                self.done[stream].set_result(bytes(self.bodies[stream]))


def configuration(testcase, is_client):
    """What aioquic is to do in this case."""
    protocols = H3_ALPN if testcase == "http3" else HQ_ALPN
    made = QuicConfiguration(is_client=is_client, alpn_protocols=protocols)
    made.secrets_log_file = open(os.environ["SSLKEYLOGFILE"], "a")
    if testcase == "chacha20":
        made.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if testcase == "v2":
        made.original_version = QuicProtocolVersion.VERSION_1
        made.supported_versions = [QuicProtocolVersion.VERSION_2, QuicProtocolVersion.VERSION_1]
    else:
        made.supported_versions = [QuicProtocolVersion.VERSION_1]
    certificates = Path(os.environ["CERTS"])
    if is_client:
        made.load_verify_locations(cafile=str(certificates / "ca.pem"))
        made.server_name = "server"
    else:
        made.load_cert_chain(str(certificates / "cert.pem"), str(certificates / "priv.key"))
    return made


async def download(made, urls, *, ticket=None, early=False, update=False):
    """Fetches `urls` over one connection."""
    target = urlsplit(urls[0])
    arrived = asyncio.get_running_loop().create_future()

    def keep(received):
        made.session_ticket = received
        if not arrived.done():
            arrived.set_result(None)

    options = {"configuration": made, "create_protocol": Client, "session_ticket_handler": keep}
    async with connect(target.hostname, target.port, wait_connected=not early, **options) as client:
        if update:
            client.request_key_update()
        waiting = [client.ask(url) for url in urls]
        client.transmit()
        for url, body in zip(urls, await asyncio.gather(*waiting)):
            (Path(os.environ["DOWNLOADS"]) / Path(urlsplit(url).path).name).write_bytes(body)
        if early and not client._quic.tls.early_data_accepted:
            raise RuntimeError("the server did not accept 0-RTT")
        if ticket:
            await asyncio.wait_for(arrived, TICKET_PATIENCE)


async def client(testcase):
    """Plays the client."""
    urls = os.environ["REQUESTS"].split()
    made = configuration(testcase, True)
    if testcase == "multiconnect":
        for url in urls:
            await download(made, [url])
    elif testcase in ("resumption", "zerortt"):
        await download(made, urls[:1], ticket=True)
        await download(made, urls[1:], early=testcase == "zerortt")
    else:
        await download(made, urls, update=testcase == "keyupdate")


async def server(testcase):
    """Plays the server, until it is killed."""
    host, _, port = os.environ["LISTEN"].rpartition(":")
    tickets = {}
    await serve(
        host.strip("[]"),
        int(port),
        configuration=configuration(testcase, False),
        create_protocol=Server,
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
        session_ticket_handler=lambda ticket: tickets.setdefault(ticket.ticket, ticket),
        retry=testcase == "retry",
    )
    await asyncio.Future()


def main():
    """Plays the side that the environment asks for."""
    role, testcase = os.environ["ROLE"], os.environ["TESTCASE"]
    if testcase not in SIDES[role] or os.environ.get("CASE") in ("ecn", "connectionmigration"):
        sys.exit(UNSUPPORTED)
    asyncio.run(client(testcase) if role == "client" else server(testcase))


main()
