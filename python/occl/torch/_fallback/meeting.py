"""How the ranks of a process group come together through PyTorch's store."""

from __future__ import annotations

import ctypes
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

import torch.distributed as dist

from ... import _library

_CALL, _NO_CALL, _FAILED = "occl/python/call", "-", "failed"


def host_id() -> str:
    text = ctypes.create_string_buffer(4096)
    length = ctypes.c_size_t()
    _library.library().occlHostId(text, ctypes.c_size_t(len(text)), ctypes.byref(length))
    return text.value.decode(errors="replace")


def meet(store: dist.Store, rank: int, size: int, seconds: float) -> str:
    """The same name on all ranks, for communicators. Ranks that fail, retry, or make a group again
    find the keys of before: so rank 0's call and each rank's answer to it have a name of their own,
    for one attempt."""
    if size == 1:
        return uuid.uuid4().hex
    attendee = _Attendee(store, rank, size, seconds)
    store.set(_here(rank), "1")
    name = attendee.preside() if rank == 0 else attendee.attend()
    attendee.erase(_here(rank))
    return name


def _here(rank: int) -> str:
    """For texts alone."""
    return f"occl/python/here/{rank}"


class _Attendee:
    def __init__(self, store: dist.Store, rank: int, size: int, seconds: float):
        self._store, self._rank, self._size, self._seconds = store, rank, size, seconds
        self._call = ""
        self._why = "rank 0 has been interrupted while it waited for the others"

    def preside(self) -> str:
        self._call = uuid.uuid4().hex
        peers = range(1, self._size)
        try:
            self._store.set(_CALL, self._call)
            places = [self._place(peer) for peer in peers]
            for _ in self._looks(self._seconds):
                if self._store.check(places):
                    break
            else:
                self._fail(self._late(self._place))
            guests = [self._read(place).split(" ", 1) for place in places]
            if any(host != host_id() for _, host in guests):
                self._fail("the ranks are on several machines, and the backend in Python is for one: "
                           "have the compiled one built (docs/torch.md)")
            self._end_call(places)
            name = uuid.uuid4().hex
            for attempt, _ in guests:
                self._store.set(self._answer(attempt), name)
            return name
        except BaseException:
            self._dismiss()
            raise

    def attend(self) -> str:
        """Rank 0 waits as long as this rank, and then says who is missing."""
        attempt = uuid.uuid4().hex
        answer = self._answer(attempt)
        try:
            for _ in self._looks(self._seconds + 2):
                if self._store.check([answer]):
                    break
                self._come_to(attempt)
            else:
                self._fail(self._late(_here))
        except BaseException:
            if self._call not in ("", _NO_CALL):
                self.erase(self._place(self._rank))
            raise
        said = self._read(answer)
        self.erase(answer)
        if said.startswith(_FAILED):
            self._fail(said.removeprefix(_FAILED + " "))
        return said

    def _come_to(self, attempt: str) -> None:
        """Answers the call, if there is one that this attempt has not answered yet."""
        if not self._store.check([_CALL]):
            return
        call = self._read(_CALL)
        if call not in (_NO_CALL, self._call):
            self._call = call
            self._store.set(self._place(self._rank), f"{attempt} {host_id()}")
        self._call = call

    def _end_call(self, places: list[str]) -> None:
        """Before anybody has an answer: who makes a group again waits for the next call."""
        self._store.set(_CALL, _NO_CALL)
        for place in places:
            self.erase(place)

    def _dismiss(self) -> None:
        """After any end of rank 0's attempt: nobody else has to wait to learn of it."""
        with suppress(Exception):  # the store is gone, which they see themselves
            self._store.set(_CALL, _NO_CALL)
            for peer in range(1, self._size):
                if self._store.check([self._place(peer)]):
                    attempt = self._read(self._place(peer)).split(" ", 1)[0]
                    self._store.set(self._answer(attempt), f"{_FAILED} {self._why}")
                    self.erase(self._place(peer))

    def _looks(self, seconds: float) -> Iterator[None]:
        """At the store: as often as befits the time that it has taken so far."""
        began = time.monotonic()
        while (waited := time.monotonic() - began) < seconds:
            yield
            self._check_others()
            time.sleep(min(max(waited / 16, 1e-3), 0.05))

    def _check_others(self) -> None:
        """A rank that has the compiled backend is at the store, and would never answer."""
        for peer in range(self._size):
            if peer != self._rank and self._store.check([f"occl/here/{peer}"]):
                self._fail(f"rank {peer} has the compiled backend, and this one that in Python: all "
                           "ranks have the same (docs/torch.md)")

    def _late(self, key: Callable[[int], str]) -> str:
        missing = [str(peer) for peer in range(self._size)
                   if peer != self._rank and not self._store.check([key(peer)])]
        if not missing:
            return "rank 0 has not said through the store where the ranks meet"
        ranks = "rank " + missing[0] + " has" if len(missing) == 1 else (
            "ranks " + ", ".join(missing) + " have")
        return f"{ranks} not come to the store within {round(self._seconds * 1000)} ms"

    def _place(self, rank: int) -> str:
        return f"occl/python/place/{self._call}/{rank}"

    @staticmethod
    def _answer(attempt: str) -> str:
        return f"occl/python/answer/{attempt}"

    def _read(self, key: str) -> str:
        return bytes(self._store.get(key)).decode()

    def erase(self, key: str) -> None:
        with suppress(Exception):  # for tidiness alone: there are stores that cannot
            self._store.delete_key(key)

    def _fail(self, why: str) -> None:
        self._why = why
        raise dist.DistBackendError(f"occl: making a group of {self._size} ranks failed on rank "
                                    f"{self._rank}: {why}")
