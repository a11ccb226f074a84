#!/usr/bin/env python3
"""Runs a command in a User-Mode Linux with soft RoCE: run.py [options] -- COMMAND...

Its root is this machine's, with the same paths; changes are kept in memory and end with it. Standard output and error and the exit
status are the command's; 124 after the timeout, 125 if the guest ended without a status. In both cases the end of its console is shown.
"""
import argparse
import functools
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
TIMED_OUT, NO_STATUS = 124, 125
CONSOLE_LINES = 40


class Guest:
    """A kernel and what is inside; ends when the command in it does."""

    def __init__(self, kernel: str, name: str, command: list[str], options: argparse.Namespace, words: list[str], cables: list[int]):
        self.name = name
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="occl-guest-"))
        (self.work / "command").write_text(script(command), errors="surrogateescape")
        (self.work / "writable").write_text("".join(os.path.realpath(folder) + "\n" for folder in options.writable))
        pipes = [os.pipe() for _ in range(3)]  # serial lines: standard output, standard error, status
        with open(self.work / "console", "wb") as console:
            self.kernel = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", kernel, f"mem={options.memory}M", "quiet", "ro", "root=none", "rootfstype=hostfs",
                 "rootflags=/", f"init={HERE}/boot.sh", f"uml_dir={self.work}/", "umid=guest", "con=null", "con0=null,fd:1", "ssl=null",
                 *(f"ssl{line}=null,fd:{write}" for line, (_, write) in enumerate(pipes)),
                 f"VERBS={HERE}", f"WORK={self.work}", f"NAME={name}", *words],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
                pass_fds=[write for _, write in pipes] + cables)
        for _, write in pipes:
            os.close(write)
        self.status = bytearray()
        sinks = (functools.partial(os.write, 1), functools.partial(os.write, 2), self.status.extend)
        self.readers = [threading.Thread(target=copy, args=(read, sink), daemon=True) for (read, _), sink in zip(pipes, sinks)]
        for reader in self.readers:
            reader.start()

    def wait(self, timeout: float) -> int:
        try:
            self.kernel.wait(timeout)
        except subprocess.TimeoutExpired:
            return self.complain(f"has not ended within {timeout:g} s", TIMED_OUT)
        for reader in self.readers:
            reader.join(10)
        if not self.status.strip():
            return self.complain("ended without a status", NO_STATUS)
        return int(self.status)

    def complain(self, what: str, status: int) -> int:
        console = (self.work / "console").read_text(errors="replace").splitlines()
        print(f"run.py: the guest {self.name} {what}; the end of its console:", *console[-CONSOLE_LINES:], sep="\n", file=sys.stderr)
        return status

    def end(self) -> None:
        try:
            os.killpg(self.kernel.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.kernel.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def copy(read: int, sink) -> None:
    while chunk := os.read(read, 1 << 16):
        rest = memoryview(chunk)
        while rest:
            rest = rest[sink(rest) or len(rest):]
    os.close(read)


def script(command: list[str]) -> str:
    """What the guest's shell executes: the command, with this process's variables and in its folder."""
    variables = [f"export {name}={shlex.quote(value)}" for name, value in os.environ.items() if re.fullmatch(r"[A-Za-z_]\w*", name)]
    return "\n".join([*variables, "PATH=$PATH:/usr/sbin:/sbin", f"cd {shlex.quote(os.getcwd())}", "exec " + shlex.join(command)]) + "\n"


def cable() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return ends


def start(kernel: str, options: argparse.Namespace, guests: list[Guest]) -> None:
    """Adds the guests; the first is the one with the command."""
    if options.topo != "hosts":
        guests.append(Guest(kernel, "a", options.command, options, [f"NETWORK={options.topo}"], []))
        return
    os.environ["OCCL_RUN_RSH"] = f"{HERE}/host.py"
    cables = [cable(), cable()]
    for host, (name, command) in enumerate((("a", options.command), ("b", ["sleep", "infinity"]))):
        ends = [pair[host].fileno() for pair in cables]
        words = [f"vec{number}:transport=fd,fd={end},mtu=4200,mac=52:54:78:00:{number:02x}:{host + 1:02x}"
                 for number, end in enumerate(ends)]
        command = [f"{HERE}/host.py", "--serve", name, *command]
        guests.append(Guest(kernel, name, command, options, [*words, "NETWORK=hosts", f"HOST={host}"], ends))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage="run.py [options] -- COMMAND...", description=__doc__.split("\n\n")[1])
    parser.add_argument("--topo", default=os.environ.get("OCCL_TOPO", "rxe:2"), metavar="TOPOLOGY",
                        help="rxe:N: devices rxe0, rxe1, ... on one switch (network.sh); hosts: two guests, a and b, with a device "
                             "rxe0 each; the command runs on a, and host.py b COMMAND runs another on b; default: OCCL_TOPO, or rxe:2")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", default=float(os.environ.get("TEST_TIMEOUT", 310)) - 10,
                        help="default: 10 less than TEST_TIMEOUT, or 300")
    parser.add_argument("--kernel", help="default: what kernel.sh says")
    parser.add_argument("--memory", type=int, default=2048, metavar="MIB", help="of each guest; default: %(default)s")
    parser.add_argument("--writable", action="append", default=[], metavar="FOLDER", help="to which guests may write; repeatable")
    parser.add_argument("command", nargs="+", metavar="COMMAND")
    options = parser.parse_args()
    if not re.fullmatch(r"rxe:[1-9]\d?|hosts", options.topo):
        parser.error(f"--topo is rxe:N or hosts, not {options.topo}")
    return options


def main() -> int:
    options = parse()
    kernel = options.kernel or subprocess.run([HERE / "kernel.sh"], stdout=subprocess.PIPE, text=True).stdout.strip()
    if not kernel:
        return NO_STATUS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    guests: list[Guest] = []
    try:
        start(kernel, options, guests)
        return guests[0].wait(options.timeout)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        for guest in guests:
            guest.end()


if __name__ == "__main__":
    sys.exit(main())
