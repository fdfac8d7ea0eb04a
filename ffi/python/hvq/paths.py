"""Snapshots of paths, and hints about their channels."""

import socket
from dataclasses import dataclass
from typing import Any, Dict, Optional

from .library import Hints


@dataclass
class PathInfo:
    """A snapshot of a path; times in seconds, sizes in bytes, the rate in bits per second or None."""

    id: int
    local: str
    remote: str
    rtt: float
    min_rtt: float
    delay: float
    window: int
    rate: Optional[int]
    bytes_sent: int
    bytes_received: int
    packets_lost: int


def text(made: Any) -> str:
    """The IP address of an address of the library."""
    family = socket.AF_INET if made.family == 4 else socket.AF_INET6
    return socket.inet_ntop(family, bytes(made.ip)[: 4 if made.family == 4 else 16])


_SHARING = [None, "shared", "dedicated", "endpoint"]
_RATE, _DELAY, _LOSS, _PRICE, _RATE_BACK = 1, 2, 4, 8, 16


def hints(
    *, rate: Optional[float] = None, rate_back: Optional[float] = None, delay: Optional[float] = None,
    loss: Optional[float] = None, price: Optional[float] = None, sharing: Optional[str] = None,
    metered: Optional[bool] = None,
) -> Hints:
    """What is known of a channel: rates in bits per second, the one-way delay in seconds, loss as a share."""
    made = Hints(sharing=_SHARING.index(sharing), metering=0 if metered is None else 2 if metered else 1)
    for bit, name, value in (
        (_RATE, "rate", rate), (_RATE_BACK, "rate_back", rate_back), (_PRICE, "price", price),
        (_DELAY, "delay", delay and round(delay * 1e9)), (_LOSS, "loss", loss and round(loss * 1e3)),
    ):
        if value is not None:
            made.known |= bit
            setattr(made, name, int(value))
    return made


def hints_told(told: Any) -> Dict[str, Any]:
    """The arguments of `hints` that are known."""
    known: Dict[str, Any] = {
        name: getattr(told, name) / scale if scale > 1 else getattr(told, name)
        for bit, name, scale in (
            (_RATE, "rate", 1), (_RATE_BACK, "rate_back", 1), (_PRICE, "price", 1), (_DELAY, "delay", 1e9),
            (_LOSS, "loss", 1e3),
        )
        if told.known & bit
    }
    if told.sharing:
        known["sharing"] = _SHARING[told.sharing]
    if told.metering:
        known["metered"] = told.metering == 2
    return known


def path_info(found: Any) -> PathInfo:
    """A snapshot from the library's own."""
    local, remote = (f"{text(end)} port {end.port}" for end in (found.route.local, found.route.remote))
    return PathInfo(
        id=found.id, local=local, remote=remote, rtt=found.rtt / 1e9, min_rtt=found.min_rtt / 1e9,
        delay=found.delay / 1e9, window=found.window, rate=found.rate or None, bytes_sent=found.bytes_sent,
        bytes_received=found.bytes_received, packets_lost=found.packets_lost,
    )
