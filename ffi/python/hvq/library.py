"""The functions and structs of hvq.h that the client uses, as ctypes knows them."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import (
    POINTER, Structure, c_char, c_char_p, c_int32, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p,
)
from typing import Any, Dict, List, Tuple

OK, BLOCKED, NONE, END, UNKNOWN_STREAM, STOPPED_ERROR, RESET = 0, -8, -9, -10, -6, -12, -13
NEVER = 2**64 - 1
IDLE, TRANSMIT, EVENT = 0, 1, 2
BIDIRECTIONAL, UNIDIRECTIONAL = 0, 1
CONNECTED, CLOSED, FORGOTTEN, STREAM_OPENED, READABLE, WRITABLE, FINISHED, STOPPED = 1, 3, 4, 5, 6, 7, 8, 9
STREAMS_AVAILABLE, DATAGRAM, PATH_OPENED = 10, 11, 12
PATH_VALIDATED, PATH_FAILED, PATH_SILENT, PATH_ANSWERING, PATH_ABANDONED, PATH_AVAILABLE = 13, 14, 17, 18, 20, 21


def _named(kind: Any, names: str) -> List[Tuple[str, Any]]:
    """Fields of one type."""
    return [(name, kind) for name in names.split()]


class Address(Structure):
    _fields_ = [("family", c_uint16), ("port", c_uint16), ("scope", c_uint32), ("ip", c_uint8 * 16)]


class Route(Structure):
    _fields_ = [("local", Address), ("remote", Address)]


class Bytes(Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def copy(self) -> bytes:
        return ctypes.string_at(self.data, self.length) if self.length else b""


class Stream(Structure):
    _fields_ = [("connection", c_uint64), ("id", c_uint64)]


class Path(Structure):
    _fields_ = [("connection", c_uint64), ("id", c_uint32), ("reserved", c_uint32)]


class TransportConfig(Structure):
    _fields_ = [
        ("size", c_size_t), ("scheduler", c_char_p), ("custom_scheduler", c_void_p), ("congestion", c_char_p),
        ("channels", c_void_p), ("channel_count", c_size_t), ("qlog_folder", c_char_p), ("log", c_void_p),
        ("log_user", c_void_p), ("log_level", c_uint32), ("paths", c_uint32),
    ] + _named(
        c_uint64,
        "idle_timeout handshake_timeout keep_alive path_keep_alive validation_timeout max_data "
        "stream_data_bidi_local stream_data_bidi_remote stream_data_uni max_window max_streams_bidi "
        "max_streams_uni send_buffer max_datagram_frame datagram_queue",
    ) + _named(c_uint32, "fixed_datagram_size max_datagram_size segments ecn grease migration") + [
        ("versions", c_void_p), ("version_count", c_size_t), ("first_version", c_uint32), ("choose_version", c_uint32),
        ("preferred_ipv4", Address), ("preferred_ipv6", Address),
    ] + _named(c_uint32, "follow_preferred spin_bit ack_requests opening_datagrams") + _named(
        c_uint64,
        "ack_threshold ack_delay ack_reordering rotation_packets rotation_time rotation_idle max_udp_payload "
        "aead_confidentiality aead_integrity",
    ) + [("path_hints", c_uint32), ("path_memory", c_uint32), ("path_keep_alive_limit", c_uint64)]


class Hints(Structure):
    _fields_ = [("known", c_uint32), ("sharing", c_uint32)] + _named(c_uint64, "rate delay price") + [
        ("loss", c_uint32), ("metering", c_uint32), ("rate_back", c_uint64),
    ]


class ClientOptions(Structure):
    _fields_ = [
        ("size", c_size_t), ("transport", POINTER(TransportConfig)), ("alpn", POINTER(c_char_p)),
        ("alpn_count", c_size_t), ("ca_file", c_char_p), ("ca_pem", Bytes), ("verify", c_void_p),
        ("verify_user", c_void_p), ("insecure", c_uint32), ("check_name", c_uint32), ("ssl_ctx", c_void_p),
        ("groups", c_char_p), ("keylog", c_void_p), ("keylog_user", c_void_p), ("sessions", c_void_p),
        ("early_data", c_uint32), ("reserved", c_uint32), ("token", Bytes), ("suites", c_void_p),
        ("suite_count", c_size_t),
    ]


class ServerOptions(Structure):
    _fields_ = [
        ("size", c_size_t), ("transport", POINTER(TransportConfig)), ("alpn", POINTER(c_char_p)),
        ("alpn_count", c_size_t), ("certificate_file", c_char_p), ("key_file", c_char_p), ("certificate_pem", Bytes),
        ("key_pem", Bytes), ("ssl_ctx", c_void_p), ("keylog", c_void_p), ("keylog_user", c_void_p),
        ("retry_from", c_uint64), ("admission", c_void_p), ("admission_user", c_void_p), ("early_data", c_uint32),
        ("reserved", c_uint32), ("early_data_context", Bytes), ("suites", c_void_p), ("suite_count", c_size_t),
    ]


class EndpointOptions(Structure):
    _fields_ = [
        ("size", c_size_t), ("server", c_void_p), ("seed", c_void_p), ("reset_key", c_void_p), ("token_key", c_void_p),
    ] + _named(c_uint64, "epoch max_connections max_handshaking") + _named(
        c_uint32, "id_length reserved resets_per_second negotiations_per_second"
    )


class Buffer(Structure):
    _fields_ = [("data", c_void_p), ("capacity", c_size_t), ("length", c_size_t)]


class Datagram(Structure):
    _fields_ = [("bytes", Bytes), ("deadline", c_uint64), ("urgency", c_uint32), ("reserved", c_uint32)]


class ConnectOptions(Structure):
    _fields_ = [("config", c_void_p), ("server_name", c_char_p), ("route", Route)]


class Incoming(Structure):
    _fields_ = [
        ("route", Route), ("bytes", c_char_p), ("length", c_size_t), ("segment", c_size_t), ("ecn", c_uint32),
        ("reserved", c_uint32),
    ]


class Transmit(Structure):
    _fields_ = [
        ("route", Route), ("bytes", c_void_p), ("length", c_size_t), ("segment", c_size_t), ("ecn", c_uint32),
        ("dscp", c_uint32),
    ]


class Event(Structure):
    _fields_ = [
        ("kind", c_uint32), ("path", c_uint32), ("connection", c_uint64), ("stream", c_uint64), ("code", c_uint64),
        ("direction", c_uint32), ("status", c_uint32), ("closed", c_uint32), ("reserved", c_uint32), ("bytes", Bytes),
    ]


class Output(Structure):
    _fields_ = [
        ("kind", c_uint32), ("reserved", c_uint32), ("deadline", c_uint64), ("transmit", Transmit), ("event", Event),
    ]


class PathStatistics(Structure):
    _fields_ = [("id", c_uint32), ("standing", c_uint32), ("route", Route)] + _named(
        c_uint64,
        "rtt min_rtt delay window in_flight rate datagram_size datagrams_sent bytes_sent packets_received "
        "bytes_received packets_acknowledged packets_lost spurious_losses packets_marked probe_timeouts",
    ) + [("congestion", c_char * 16)]


# The arguments of each function; all return a result, unless RETURNS says otherwise.
FUNCTIONS: Dict[str, List[Any]] = {
    "hvq_version": [],
    "hvq_error_name": [c_int32],
    "hvq_last_error": [c_void_p, c_size_t],
    "hvq_address_parse": [c_char_p, POINTER(Address)],
    "hvq_address_format": [POINTER(Address), c_void_p, c_size_t],
    "hvq_transport_config_init": [POINTER(TransportConfig), c_size_t],
    "hvq_client_options_init": [POINTER(ClientOptions), c_size_t],
    "hvq_client_config_new": [POINTER(ClientOptions), POINTER(c_void_p)],
    "hvq_client_config_free": [c_void_p],
    "hvq_server_options_init": [POINTER(ServerOptions), c_size_t],
    "hvq_server_config_new": [POINTER(ServerOptions), POINTER(c_void_p)],
    "hvq_server_config_free": [c_void_p],
    "hvq_endpoint_options_init": [POINTER(EndpointOptions), c_size_t],
    "hvq_endpoint_new": [POINTER(EndpointOptions), POINTER(c_void_p)],
    "hvq_endpoint_free": [c_void_p],
    "hvq_endpoint_connect": [c_void_p, POINTER(ConnectOptions), c_uint64, POINTER(c_uint64)],
    "hvq_endpoint_handle": [c_void_p, POINTER(Incoming), c_uint64],
    "hvq_endpoint_poll": [c_void_p, c_uint64, POINTER(Output)],
    "hvq_connection_close": [c_void_p, c_uint64, c_uint64, c_char_p, c_uint64],
    "hvq_connection_alpn": [c_void_p, c_uint64, c_char_p, c_size_t],
    "hvq_stream_open": [c_void_p, c_uint64, c_uint32, POINTER(Stream)],
    "hvq_stream_accept": [c_void_p, c_uint64, c_uint32, POINTER(Stream)],
    "hvq_stream_write": [c_void_p, Stream, c_char_p, c_size_t, POINTER(c_size_t)],
    "hvq_stream_finish": [c_void_p, Stream],
    "hvq_stream_reset": [c_void_p, Stream, c_uint64],
    "hvq_stream_stop": [c_void_p, Stream, c_uint64],
    "hvq_stream_set_priority": [c_void_p, Stream, c_uint32, c_uint32],
    "hvq_stream_read_chunk": [c_void_p, Stream, c_size_t, POINTER(Bytes)],
    "hvq_datagram_send": [c_void_p, c_uint64, POINTER(Datagram)],
    "hvq_datagram_receive": [c_void_p, c_uint64, POINTER(Buffer)],
    "hvq_path_abandon": [c_void_p, Path, c_uint64, c_uint64],
    "hvq_path_open": [c_void_p, c_uint64, POINTER(Route), c_uint64, POINTER(Path)],
    "hvq_path_set_hints": [c_void_p, Path, POINTER(Hints)],
    "hvq_path_get_peer_hints": [c_void_p, Path, POINTER(Hints)],
    "hvq_path_list": [c_void_p, c_uint64, POINTER(PathStatistics), c_size_t, POINTER(c_size_t)],
}
RETURNS: Dict[str, Any] = {
    "hvq_version": c_char_p, "hvq_error_name": c_char_p, "hvq_last_error": c_size_t, "hvq_client_config_free": None,
    "hvq_server_config_free": None,
}


class Error(Exception):
    """A call that failed: `name` is that of the error number."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


def load() -> Any:
    """Loads the library: the file that HVQ_LIBRARY names, the one beside this file in a wheel, or what the system finds."""
    beside = pathlib.Path(__file__).with_name("libhvq.so")
    installed = str(beside) if beside.exists() else ctypes.util.find_library("hvq")
    found = os.environ.get("HVQ_LIBRARY") or installed or "libhvq.so.0"
    library = ctypes.CDLL(found)
    for name, arguments in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = RETURNS.get(name, c_int32)
    return library


LIBRARY = load()


def error(result: int) -> Error:
    """The exception for a result."""
    text = ctypes.create_string_buffer(512)
    LIBRARY.hvq_last_error(text, len(text))
    return Error(LIBRARY.hvq_error_name(result).decode(), text.value.decode(errors="replace"))


def check(result: int) -> None:
    """Raises what a result stands for, unless it is fine."""
    if result != OK:
        raise error(result)


def address(host: str, port: int) -> Address:
    """An address of the library; `host` is an IP address."""
    made = Address()
    text = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    check(LIBRARY.hvq_address_parse(text.encode(), ctypes.byref(made)))
    return made
