"""Clients and servers for asyncio.

    import asyncio, hvq.aio

    async def main():
        async with hvq.aio.connect("192.0.2.1", 4433, name="example.org", paths=[("10.0.0.2", None)]) as connection:
            print((await connection.get("/")).body)

    asyncio.run(main())

A server calls a coroutine for every connection:

    async def answer(connection):
        async for stream in connection:
            await stream.write(await stream.read_all())
            stream.finish()

    async with await hvq.aio.serve([("127.0.0.1", 4433)], answer, certificate="cert.pem", key="key.pem", alpn=["echo"]) as server:
        await server.wait_closed()
"""

from .client import Connecting, connect
from .connection import Connection
from .server import Server, serve
from .stream import Stream, StreamReset, StreamStopped

__all__ = ["Connecting", "Connection", "Server", "Stream", "StreamReset", "StreamStopped", "connect", "serve"]
