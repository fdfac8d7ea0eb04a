"""Clients and servers of asyncio with each other, and the client against `hvq serve`."""

import asyncio
import os
import unittest

import hvq
import hvq.aio

FIRST, SECOND = (
    (host, int(port)) for host, port in (entry.split(":") for entry in os.environ["HVQ_SERVERS"].split(","))
)
CA, KEY = os.environ["HVQ_CA"], os.environ["HVQ_KEY"]
LOCAL = [("127.0.0.1", 0), ("127.0.0.2", 0)]


async def answer_all(connection):
    tasks = []

    async def answer(stream):
        async for chunk in stream:
            await stream.write(chunk)
        stream.finish()

    async for stream in connection:
        tasks.append(asyncio.ensure_future(answer(stream)))
    for task in tasks:
        task.cancel()


def serve(handler=answer_all, **options):
    return hvq.aio.serve(LOCAL, handler, certificate=CA, key=KEY, alpn=["echo"], **options)


def connect(server, **options):
    options.setdefault("alpn", ["echo"])
    return hvq.aio.connect(*server.addresses[0], name="localhost", ca=CA, **options)


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_pages_are_fetched_at_the_same_time_over_two_paths(self):
        async with hvq.aio.connect(*FIRST, name="localhost", ca=CA, paths=[("127.0.0.2", SECOND)], scheduler="round-robin") as connection:
            answers = await asyncio.gather(connection.get("/big"), *(connection.get("/small", urgency=0) for _ in range(20)))
            self.assertEqual([(found.status, len(found.body)) for found in answers], [(200, 1_000_000)] + [(200, 1000)] * 20)
            paths = connection.paths()
        self.assertEqual([path.id for path in paths], [0, 1])
        for path in paths:
            self.assertGreater(path.bytes_received, 10_000)

    async def test_streams_carry_more_than_windows_hold_both_ways(self):
        data = os.urandom(3_000_000)
        async with await serve() as server, connect(server) as connection:
            self.assertEqual(connection.alpn, "echo")
            stream = await connection.open_stream()

            async def send():
                await stream.write(data)
                stream.finish()

            received, _ = await asyncio.gather(stream.read_all(), send())
            self.assertEqual(received, data)
            self.assertEqual(await connection.exchange(b""), b"")

    async def test_many_streams_wait_for_permission_and_each_gets_its_own(self):
        async with await serve() as server, connect(server) as connection:
            answers = await asyncio.gather(*(connection.exchange(b"%d" % number) for number in range(500)))
            self.assertEqual(answers, [b"%d" % number for number in range(500)])

    async def test_a_path_opened_later_carries_on_when_the_first_is_given_up(self):
        async with await serve() as server, connect(server) as connection:
            path = await connection.open_path("127.0.0.3", server.addresses[1], rate=2_000_000, delay=0.0025)
            self.assertEqual(path, 1)
            connection.abandon_path(0)
            self.assertEqual(await connection.exchange(b"still here"), b"still here")
            with self.assertRaises(hvq.Error):
                connection.abandon_path(77)
            with self.assertRaises(OSError):
                await connection.open_path("192.0.2.7", server.addresses[1])

    async def test_a_path_that_nobody_answers_is_an_error(self):
        async with await serve() as server, connect(server) as connection:
            deaf = ("127.0.0.9", server.addresses[0][1])
            with self.assertRaisesRegex(OSError, "nobody answers"):
                await connection.open_path(None, deaf)
            self.assertEqual(await connection.exchange(b"fine"), b"fine")

    async def test_datagrams_arrive(self):
        async def reflect(connection):
            while True:
                connection.send_datagram(await connection.receive_datagram())

        async with await serve(reflect, datagrams=True) as server, connect(server, datagrams=True) as connection:
            connection.send_datagram(b"ping")
            self.assertEqual(await asyncio.wait_for(connection.receive_datagram(), 5), b"ping")

    async def test_resets_and_stops_are_told(self):
        async def refuse(connection):
            async for stream in connection:
                stream.stop(7)
                stream.reset(8)

        async with await serve(refuse) as server, connect(server) as connection:
            stream = await connection.open_stream()
            await stream.write(b"x")
            with self.assertRaises(hvq.aio.StreamReset):
                await stream.read_all()
            with self.assertRaises(hvq.aio.StreamStopped):
                while True:
                    await stream.write(bytes(100_000))

    async def test_waiting_ends_when_the_connection_does(self):
        async def leave(connection):
            await connection.accept_stream()
            connection.close(3, "enough")

        async with await serve(leave) as server:
            connection = await connect(server)
            stream = await connection.open_stream()
            await stream.write(b"x")
            with self.assertRaisesRegex(hvq.ConnectionClosed, "enough"):
                await stream.read()
            self.assertIn("enough", await connection.wait_closed())
            with self.assertRaises(hvq.ConnectionClosed):
                await connection.open_stream()
            self.assertIsNone(await connection.accept_stream())

    async def test_a_handler_that_fails_closes_its_connection_alone(self):
        async def fail(connection):
            if (await (await connection.accept_stream()).read_all()) == b"bad":
                raise RuntimeError("of the test")
            await connection.wait_closed()

        with self.assertLogs("hvq", "ERROR"):
            async with await serve(fail) as server, connect(server) as bystander:
                connection = await connect(server)
                with self.assertRaises(hvq.ConnectionClosed):
                    await connection.exchange(b"bad")
                self.assertEqual(len(bystander.paths()), 1)

    async def test_mistakes_are_told(self):
        with self.assertRaises(hvq.Error):
            await hvq.aio.serve(LOCAL, answer_all, certificate="/none", key=KEY)
        with self.assertRaises(ValueError):
            await hvq.aio.serve([("0.0.0.0", 0)], answer_all, certificate=CA, key=KEY)
        async with await serve() as server:
            with self.assertRaisesRegex(hvq.ConnectionClosed, "certificate"):
                await hvq.aio.connect(*server.addresses[0], name="example.org", ca=CA, alpn=["echo"])
            with self.assertRaises(hvq.ConnectionClosed):
                await connect(server, alpn=["other"])
        with self.assertRaises((TimeoutError, asyncio.TimeoutError)):
            await hvq.aio.connect("127.0.0.1", 9, name="localhost", ca=CA, timeout=0.3)

    async def test_streams_that_are_dropped_are_not_kept(self):
        async with await serve() as server, connect(server) as connection:
            for _ in range(50):
                await connection.exchange(b"x")
            self.assertLess(len(connection._streams), 5)


if __name__ == "__main__":
    unittest.main()
