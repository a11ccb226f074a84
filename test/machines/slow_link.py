#!/usr/bin/env python3
"""A second link between the namespaces a and b of namespaces.sh, on which each packet takes some time:
slow_link.py <milliseconds>. Their interfaces there are slow0, 10.78.0.1 and 10.78.0.2. Says "ready", and lasts until its
standard input ends.
"""
import collections
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(name: str) -> None:
    holders = dict(entry.split("=") for entry in os.environ["OCCL_NAMESPACES"].split())
    with open(f"/proc/{holders[name]}/ns/net") as file:
        if LIBC.setns(file.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter namespace {name}")


def openEnd(name: str, address: str) -> int:
    enter(name)
    tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH", b"slow0", IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "address", "add", f"{address}/24", "dev", "slow0"], check=True)
    subprocess.run(["ip", "link", "set", "slow0", "up"], check=True)
    return tunnel


def relay(ends: tuple[int, int], delay: float) -> None:
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    underWay = collections.deque()  # (when, where to, packet)
    while True:
        wait = max(0.0, underWay[0][0] - time.monotonic()) if underWay else None
        ready, _, _ = select.select([*ends, sys.stdin], [], [], wait)
        if sys.stdin in ready:
            return
        for end in ready:
            underWay.append((time.monotonic() + delay, other[end], os.read(end, 65536)))
        while underWay and underWay[0][0] <= time.monotonic():
            _, end, packet = underWay.popleft()
            try:
                os.write(end, packet)
            except OSError:
                pass  # as a link that is congested, or down


ENDS = openEnd("a", "10.78.0.1"), openEnd("b", "10.78.0.2")
print("ready", flush=True)
relay(ENDS, int(sys.argv[1]) / 1000)
