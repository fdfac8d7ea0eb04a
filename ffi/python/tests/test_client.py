"""The client against `hvq serve` on the two addresses of HVQ_SERVERS, which serves /big and /small."""

import ctypes
import os
import re
import unittest
from pathlib import Path

import hvq
from hvq import library, qpack

FIRST, SECOND = (
    (host, int(port)) for host, port in (entry.split(":") for entry in os.environ["HVQ_SERVERS"].split(","))
)
CA = os.environ["HVQ_CA"]


class Client(unittest.TestCase):
    def connect(self, **options):
        return hvq.connect(*FIRST, name="localhost", ca=CA, **options)

    def test_a_fetch_over_two_paths_uses_both(self):
        with self.connect(paths=[("127.0.0.2", SECOND)], scheduler="round-robin") as connection:
            response = connection.get("/big")
            self.assertEqual((response.status, len(response.body)), (200, 1_000_000))
            self.assertGreater(response.seconds, 0)
            paths = connection.paths()
        self.assertEqual([path.id for path in paths], [0, 1])
        for path in paths:
            self.assertGreater(path.bytes_received, 10_000)
            self.assertGreater(path.rtt, 0)
        self.assertTrue(paths[1].local.startswith("127.0.0.2 "))

    def test_requests_follow_each_other_on_one_path(self):
        with self.connect() as connection:
            for _ in range(5):
                self.assertEqual(len(connection.get("/small", urgency=0).body), 1000)
            self.assertEqual(connection.get("/missing").status, 404)
            self.assertEqual(len(connection.paths()), 1)

    def test_hints_about_a_path_are_taken_and_those_of_the_server_can_be_read(self):
        hints = dict(rate=2_000_000, delay=0.0025, loss=0.005, price=3, sharing="endpoint", metered=True)
        with self.connect(paths=[("127.0.0.2", SECOND, hints)]) as connection:
            connection.set_hints(1, rate=2_000_000, rate_back=60_000_000)
            self.assertEqual(connection.peer_hints(1), {})
            self.assertEqual(connection.get("/small").status, 200)
            with self.assertRaises(ValueError):
                connection.set_hints(1, sharing="nobody")
            with self.assertRaises(hvq.Error):
                connection.peer_hints(9)

    def test_a_server_that_is_not_trusted_is_refused(self):
        with self.assertRaisesRegex(hvq.ConnectionClosed, "certificate"):
            hvq.connect(*FIRST, name="localhost", ca=None)
        with self.assertRaisesRegex(hvq.ConnectionClosed, "certificate"):
            hvq.connect(*FIRST, name="example.org", ca=CA)

    def test_mistakes_have_names(self):
        with self.assertRaises(hvq.Error) as caught:
            self.connect(scheduler="no-such")
        self.assertEqual(caught.exception.name, "HVQ_ERR_UNKNOWN_NAME")
        connection = self.connect()
        connection.close()
        connection.close()
        with self.assertRaises(hvq.Error) as caught:
            connection.paths()
        self.assertEqual(caught.exception.name, "HVQ_ERR_NULL")


class Tables(unittest.TestCase):
    def test_strings_of_the_examples_in_rfc_7541_are_decoded(self):
        self.assertEqual(qpack.huffman(bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")), b"www.example.com")
        self.assertEqual(qpack.huffman(bytes.fromhex("6402")), b"302")
        with self.assertRaises(qpack.Malformed):
            qpack.huffman(b"\xff\xff\xff\xff")

    def test_fields_survive_encoding(self):
        fields = [(":method", "GET"), (":path", "/a" * 200), ("accept", "*/*"), ("x-new", "value")]
        section = qpack.encode(fields)
        self.assertEqual(qpack.decode(section), fields)
        for damaged in (section[:-1], section[:-6], section[:1], b"\x02\x00", b"\x00\x00\x80", b"\x00\x00\xff\xff\x01"):
            with self.assertRaises(qpack.Malformed):
                qpack.decode(damaged)

    def test_structs_are_as_large_as_the_header_says(self):
        options = library.ClientOptions()
        size = ctypes.sizeof(options)
        library.check(library.LIBRARY.hvq_client_options_init(ctypes.byref(options), size))
        library.check(library.LIBRARY.hvq_transport_config_init(
            ctypes.byref(library.TransportConfig()), ctypes.sizeof(library.TransportConfig)))
        header = Path(__file__).parents[2] / "include" / "hvq.h"
        text = header.read_text()
        for name, struct in (("transport_config", library.TransportConfig), ("client_options", library.ClientOptions),
                             ("server_options", library.ServerOptions), ("endpoint_options", library.EndpointOptions),
                             ("buffer", library.Buffer), ("datagram", library.Datagram),
                             ("path_statistics", library.PathStatistics), ("hints", library.Hints), ("event", library.Event),
                             ("output", library.Output), ("incoming", library.Incoming)):
            body = re.search(r"typedef struct hvq_%s \{(.*?)\n\} hvq_%s;" % (name, name), text, re.S).group(1)
            fields = re.findall(r"(\w+)(?:\[\d+\])?;$", re.sub(r"//.*", "", body), re.M)
            self.assertEqual(fields, [entry[0] for entry in struct._fields_], name)

    def test_the_code_of_the_documents_is_python(self):
        root = Path(__file__).parents[3]
        for name in ("ffi/python/README.md", "docs/c.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", (root / name).read_text(), re.S | re.M)
            self.assertTrue(blocks, name)
            for block in blocks:
                compile(block, name, "exec")


if __name__ == "__main__":
    unittest.main()
