#!/usr/bin/env python3
"""What threads share goes through runtime/sync, so that test/explore sees every access of it.

Fails if a source of the runtime names the standard library's or the system's means itself. Looks at the tree of the
workspace, as a list of packages would miss those that come later.
"""
import os
import pathlib
import re
import sys

DIRECT = re.compile(
    r"std::atomic|std::(recursive_|shared_|timed_)?mutex\b|std::condition_variable|std::j?thread\b"
    r"|std::this_thread|std::call_once|std::once_flag|std::(counting_|binary_)?semaphore"
    r"|std::latch|std::barrier|std::steady_clock|std::future|std::async|\bthread_local\b"
    r"|__atomic_|__sync_|\bvolatile\b|\b(u|nano)sleep\(|sched_yield|\bpthread_|SYS_futex")

# With the reason.
ALLOWED = {
    "runtime/api/occl_device_words.cuh": "device code, a header of programs",
    "runtime/api/mpix_occl.h": "a header for programs, also in C",
    "runtime/api/mpix_occl_completion.h": "a header for programs, also in C",
    "runtime/cuda/kernels/block_run.cuh": "device code",
    "runtime/cuda/kernels/bound.cuh": "device code",
    "runtime/cuda/bitcode/occl_device.cu": "device code",
    "runtime/cuda/bitcode/without_toolkit.h": "device code",
    "runtime/cuda/device/buffer_check.cpp": "what a thread remembers of its own questions to CUDA",
    "runtime/cuda/device/cuda_calls.cpp": "a thread that is left behind where a call of CUDA never returns",
    "runtime/cuda/kernels/in_stream_begin.cuh": "device code",
    "runtime/cuda/kernels/in_stream_straight.cuh": "device code",
    "runtime/cuda/kernels/in_stream_straight_adopt.cuh": "device code",
    "runtime/cuda/kernels/straight_block.cuh": "device code",
    "runtime/cuda/resident/kernel/warp_target.cuh": "device code",
    "runtime/cuda/transfer/transfer_kernel.cu": "device code",
    "runtime/cuda/transfer/transfer_reports.cuh": "device code",
    "runtime/observe/counters/counters.h": "one writer at a time, and nobody waits for a value",
    "runtime/observe/counters/collective_counters.h": "a time that is shown, and nobody waits for it",
    "runtime/observe/report/report_signal.cpp": "a signal handler may access nothing but such words",
    "runtime/observe/trace/trace.cpp": "a ring for each real thread, which fibers would share",
    "runtime/observe/trace/trace_ring.h": "a ring for each real thread, which fibers would share",
    "runtime/exec/cuda/block_vote.cuh": "device code",
    "runtime/exec/cuda/target_cuda.cuh": "device code",
    "runtime/exec/cuda/line_words.cuh": "device code",
}


def without_comments(text):
    blank = lambda match: "\n" * match.group().count("\n")
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)


def main():
    wrong, seen, used = [], 0, set()
    # Runfiles and sandboxes link to the file itself.
    root = pathlib.Path(os.path.realpath(__file__)).parents[2]
    for file in sorted((root / "runtime").rglob("*")):
        path = file.relative_to(root)
        if path.suffix not in (".h", ".cpp", ".cu", ".cuh") or path.name.endswith("_test.cpp"):
            continue
        if path.parts[1] in ("base", "sync") or {"testing", "tests", "conformance"} & set(path.parts):
            continue
        seen += 1
        for number, line in enumerate(without_comments(file.read_text(encoding="utf-8")).split("\n"), 1):
            found = DIRECT.search(line)
            if found and str(path) in ALLOWED:
                used.add(str(path))
            elif found:
                wrong.append(f"{path}:{number}: {found.group()}: use runtime/sync")
    if seen < 400:
        wrong.append(f"only {seen} sources were found")
    wrong += [f"{path} is allowed what it does not use" for path in set(ALLOWED) - used]
    print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
