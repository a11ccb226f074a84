"""Sends and receives that are matched by rank and tag, over transfers that are matched in order."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

import numpy
import torch
import torch.distributed as dist
from torch import Tensor

import occl

from .elements import flat, type_name
from .engine import Engine
from .work import OcclWork

_MESSAGE, _FAREWELL = 1, 2
# In flight at a time: together fewer than the communicator has requests, so that messages that
# nobody receives do not keep this rank from receiving.
_MOST_SENDS, _MOST_ARRIVING = 2048, 64
REQUESTS = 4096
ANY_SOURCE = -1
_TYPES = sorted({one for one in vars(torch).values() if isinstance(one, torch.dtype)}, key=str)


def _describe(nbytes: int, dtype: torch.dtype) -> str:
    return f"{nbytes} bytes of {type_name(dtype)}"


def transfer(comm: occl.Communicator, sends: list[tuple[int, object]],
             receives: list[tuple[int, object]]) -> occl.Request:
    """Of arrays to and from ranks."""
    with comm.start_group() as request:
        for peer, array in receives:
            comm.recv(array, peer)
        for peer, array in sends:
            comm.send(array, peer)
    return request


@dataclass(eq=False)
class _Send:
    work: OcclWork | None  # none of a farewell
    header: numpy.ndarray
    tensor: Tensor | None
    peer: int
    seconds: float
    until: float


@dataclass(eq=False)
class _Receive:
    work: OcclWork
    tensor: Tensor
    peer: int
    tag: int
    seconds: float
    until: float


@dataclass(eq=False)
class _Arrival:
    """A message whose header is here."""

    peer: int
    tag: int
    dtype: torch.dtype
    bytes: int
    number: int
    receive: _Receive | None = None
    into: Tensor | None = None  # bytes; the receive's own tensor, or what is copied to it
    is_straight: bool = False
    is_here: bool = False


@dataclass(eq=False)
class _Peer:
    header: numpy.ndarray = field(default_factory=lambda: numpy.zeros(4, "int64"))
    is_armed: bool = False  # its next header is being received
    has_left: bool = False
    arriving: int = 0
    unclaimed: list[_Arrival] = field(default_factory=list)


class Messages(Engine):
    """A message is two transfers: a header with tag, size and type, then the data. A rank takes the
    header of a peer while somebody waits for a message that may be of this peer; the data go to
    the first receive that fits, else to memory of their own until one comes. The communicator is
    for messages alone, and has no deadline: headers may be waited for as long as it takes."""

    def __init__(self, comm: occl.Communicator):
        super().__init__(comm)
        self._peers = [_Peer() for _ in range(comm.size)]
        self._posted: list[_Receive] = []
        self._sending: list[_Send] = []
        self._to_send: deque[_Send] = deque()
        self._receiving: list[_Arrival] = []
        self._arrivals = 0
        self._is_used = False

    def send(self, tensor: Tensor, peer: int, tag: int, seconds: float) -> OcclWork:
        work = OcclWork(self, "send")
        header = numpy.array([_MESSAGE, tag, _TYPES.index(tensor.dtype), tensor.nbytes], "int64")
        send = _Send(work, header, tensor, peer, seconds, time.monotonic() + seconds)
        with self.lock:
            self._is_used = True
            self._to_send.append(send)
            self._send_next()
        return work

    def receive(self, tensor: Tensor, peer: int, tag: int, seconds: float) -> OcclWork:
        work = OcclWork(self, "recv", [tensor])
        if peer != ANY_SOURCE:
            work.source = peer
        with self.lock:
            self._is_used = True
            self._post(_Receive(work, tensor, peer, tag, seconds, time.monotonic() + seconds))
        return work

    def leave(self) -> bool:
        """This rank takes part no more, and says so to those who may wait for its messages. Whether
        nothing is in flight then."""
        with self.lock:
            for receive in self._posted:
                receive.work.part_ended(dist.DistBackendError(
                    "occl: recv: the process group was destroyed"))
            self._posted.clear()
            for number, peer in enumerate(self._peers):
                if self._is_used and number != self.comm.rank and not peer.has_left:
                    self._begin(_Send(None, numpy.array([_FAREWELL, 0, 0, 0], "int64"), None, number,
                                      0, float("inf")))
        until = time.monotonic() + 2
        while self.progress() and time.monotonic() < until:
            time.sleep(50e-6)
        return not self.has_running()

    # --- Sends.

    def _send_next(self) -> None:
        while self._to_send and len(self._sending) < _MOST_SENDS:
            self._begin(self._to_send.popleft())

    def _begin(self, send: _Send) -> None:
        parts: list[tuple[int, object]] = [(send.peer, send.header)]
        if send.tensor is not None and send.tensor.nbytes:
            parts.append((send.peer, flat(send.tensor).view(torch.uint8)))

        def ended(error: Exception | None) -> None:
            self._sending.remove(send)
            if send.work is not None:
                send.work.part_ended(error)
            self._send_next()

        self._sending.append(send)
        self.add(f"send to rank {send.peer}", lambda: transfer(self.comm, parts, []), ended)

    # --- Receives.

    def _post(self, receive: _Receive) -> None:
        """Takes a message that is here or on its way, the one that came first; else waits for one."""
        found = min((arrival for number, peer in enumerate(self._peers)
                     if receive.peer in (ANY_SOURCE, number) for arrival in peer.unclaimed
                     if arrival.tag == receive.tag), key=lambda one: one.number, default=None)
        if found is not None:
            self._peers[found.peer].unclaimed.remove(found)
            found.receive = receive
            receive.work.source = found.peer
            if found.is_here:
                self._deliver(found)
        elif receive.peer != ANY_SOURCE and self._peers[receive.peer].has_left:
            receive.work.part_ended(dist.DistBackendError(
                f"occl: recv: rank {receive.peer} has destroyed its process group"))
        else:
            self._posted.append(receive)
            self._arm()

    def _arm(self) -> None:
        """Receives the next header of those whose messages are waited for."""
        own = self.comm.rank
        for number, peer in enumerate(self._peers):
            if peer.is_armed or peer.has_left or peer.arriving >= _MOST_ARRIVING:
                continue
            if any(receive.peer == number or receive.peer == ANY_SOURCE and number != own
                   for receive in self._posted):
                peer.is_armed = True
                self._await_header(number, peer)

    def _await_header(self, number: int, peer: _Peer) -> None:
        self.add(f"recv from rank {number}",
                 lambda: transfer(self.comm, [], [(number, peer.header)]),
                 lambda error: self._header_came(number, error))

    def _header_came(self, number: int, error: Exception | None) -> None:
        peer = self._peers[number]
        peer.is_armed = False
        if error is not None:
            self._fail_posted(number, error)
            return
        kind, tag, dtype, nbytes = (int(word) for word in peer.header)
        if kind == _FAREWELL:
            peer.has_left = True
            self._fail_posted(number, dist.DistBackendError(
                f"occl: recv: rank {number} has destroyed its process group"))
            return
        arrival = _Arrival(number, tag, _TYPES[dtype], nbytes, self._arrivals)
        self._arrivals += 1
        try:
            self._match(arrival)
        except (MemoryError, RuntimeError):  # of PyTorch's: nobody can have what comes from this peer
            why = (f"rank {self.comm.rank} has no memory for a message of {nbytes} bytes of rank {number}, "
                   "which no receive of that size waits for")
            self.closed = self.closed or why
            self.comm.abort()
            self._fail_posted(number, dist.DistBackendError(f"occl: recv: {why}"))
            return
        self._take(arrival)
        self._arm()

    def _match(self, arrival: _Arrival) -> None:
        """Nothing is taken if there is no memory for the message."""
        receive = next((one for one in self._posted
                        if one.peer in (ANY_SOURCE, arrival.peer) and one.tag == arrival.tag), None)
        arrival.receive = receive
        if receive is not None and self._fits(arrival):
            arrival.is_straight = True
            arrival.into = flat(receive.tensor).view(torch.uint8)
        else:
            arrival.into = torch.empty(arrival.bytes, dtype=torch.uint8)
        if receive is None:
            self._peers[arrival.peer].unclaimed.append(arrival)
        else:
            self._posted.remove(receive)
            receive.work.source = arrival.peer

    def _take(self, arrival: _Arrival) -> None:
        peer = self._peers[arrival.peer]

        def ended(error: Exception | None) -> None:
            peer.arriving -= 1
            self._receiving.remove(arrival)
            arrival.is_here = True
            if error is not None and arrival in peer.unclaimed:
                peer.unclaimed.remove(arrival)
            if arrival.receive is not None and error is not None:
                arrival.receive.work.part_ended(error)
            elif arrival.receive is not None:
                self._deliver(arrival)
            self._arm()

        peer.arriving += 1
        self._receiving.append(arrival)
        if not arrival.bytes:
            ended(None)
            return
        self.add(f"recv from rank {arrival.peer}",
                 lambda: transfer(self.comm, [], [(arrival.peer, arrival.into)]), ended)

    @staticmethod
    def _fits(arrival: _Arrival) -> bool:
        assert arrival.receive is not None
        tensor = arrival.receive.tensor
        return tensor.nbytes == arrival.bytes and tensor.dtype == arrival.dtype

    def _deliver(self, arrival: _Arrival) -> None:
        """The message is here, and who gets it."""
        receive = arrival.receive
        assert receive is not None and arrival.into is not None
        if not self._fits(arrival):
            receive.work.part_ended(dist.DistBackendError(
                f"occl: recv on rank {self.comm.rank}: the message of rank {arrival.peer} with tag "
                f"{arrival.tag} is {_describe(arrival.bytes, arrival.dtype)}, the tensor "
                f"{_describe(receive.tensor.nbytes, receive.tensor.dtype)}: both sides must agree"))
            return
        if not arrival.is_straight:
            flat(receive.tensor).view(torch.uint8).copy_(arrival.into)
        arrival.into = None
        receive.work.part_ended()

    def _fail_posted(self, number: int, why: Exception) -> None:
        """Receives that only this peer could have served end; those from any source if nobody is
        left."""
        is_any_left = any(not peer.has_left for other, peer in enumerate(self._peers)
                          if other != self.comm.rank)
        hit = [receive for receive in self._posted if receive.peer == number
               or receive.peer == ANY_SOURCE and not (is_any_left and self._peers[number].has_left)]
        for receive in hit:
            self._posted.remove(receive)
            receive.work.part_ended(why)

    # --- Deadlines.

    def _look(self) -> None:
        """Fails receives whose message has not begun to come. A transfer that has begun cannot be
        called back, and ends all messages of the group."""
        now = time.monotonic()
        for receive in [one for one in self._posted if one.until <= now]:
            self._posted.remove(receive)
            receive.work.part_ended(dist.DistBackendError(self._late(receive)))
        text = ""
        for send in self._sending:
            if send.until <= now:
                text = (f"timeout: rank {send.peer} has not received the message of "
                        f"{send.header[3]} bytes with tag {send.header[1]} of rank {self.comm.rank} "
                        f"within {round(send.seconds * 1000)} ms")
        for arrival in self._receiving:
            if arrival.receive is not None and arrival.receive.until <= now:
                text = (f"timeout: rank {arrival.peer} has not finished sending a message of "
                        f"{arrival.bytes} bytes to rank {self.comm.rank} within "
                        f"{round(arrival.receive.seconds * 1000)} ms")
        if text and not self.closed:
            self.closed = text
            self.comm.abort()

    def _late(self, receive: _Receive) -> str:
        who = "no rank has" if receive.peer == ANY_SOURCE else f"rank {receive.peer} has not"
        there = "".join(f"; there is one of rank {number} with tag {arrival.tag}"
                        for number, peer in enumerate(self._peers) for arrival in peer.unclaimed)
        return (f"occl: recv on rank {self.comm.rank}: timeout: {who} sent a message with tag "
                f"{receive.tag} within {round(receive.seconds * 1000)} ms{there}")
