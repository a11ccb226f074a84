#!/usr/bin/env python3
"""occl_device.bc is what compilers of kernels can link: the functions that python/occl/triton/__init__.py names, with its types, each in one piece, without
shared memory, of no particular target. Arguments: that file; and, where clang 19 was found, the bitcode, llvm-dis, llc."""
import re
import subprocess
import sys
from pathlib import Path

LLVM_TYPES = {"core.int64": "i64", "core.int32": "i32"}


def check(condition: object, text: object) -> None:
    if not condition:
        sys.exit(f"bitcode_test: {text}")


def called(module: Path) -> dict[str, int]:
    """The functions that the module of Python calls, and how many arguments each gets."""
    found = re.findall(r'_call\("(\w+)", \[([^\]]*)\]', module.read_text())
    return {name: arguments.count(",") + 1 for name, arguments in found}


def main() -> None:
    if len(sys.argv) == 2:
        print("skipped: there is no clang++-19 with llvm-as-19, llvm-dis-19 and llc-19, so no "
              "occl_device.bc (tools/setup.sh triton)")
        return
    module, bitcode, disassembler, compiler = sys.argv[1:]
    text = subprocess.run([disassembler, bitcode, "-o", "-"], capture_output=True, text=True, check=True).stdout
    functions = {name: arguments.count("i64") for name, arguments in
                 re.findall(r"^define [^@]*i32 @(\w+)\(([^)]*)\)", text, flags=re.M)}
    wanted = called(Path(module))
    check(len(wanted) >= 6, f"{module} calls {sorted(wanted)}")
    check(functions == wanted, f"the bitcode has {functions}, and {module} calls {wanted}")
    check(len(re.findall(r"^define ", text, flags=re.M)) == len(wanted), "there are functions beside these")
    check("ptr noundef %" not in "".join(re.findall(r"^define .*", text, flags=re.M)), "a parameter is no number")
    check("addrspace(3)" not in text, "it has shared memory")
    check("target-cpu" not in text and "target-features" not in text, "its functions are of a target")
    check("!llvm.module.flags" not in text, "it has flags that what it is linked with may contradict")
    check(text.count("alwaysinline") >= 1, "its functions are not to be inlined")
    outside = [name for name in re.findall(r"^declare [^@]*@([\w.]+)\(", text, flags=re.M) if not name.startswith("llvm.")]
    check(not outside, f"it needs {outside}")
    ptx = subprocess.run([compiler, "-march=nvptx64", "-mcpu=sm_90", "-mattr=+ptx83", bitcode, "-o", "-"],
                         capture_output=True, text=True, check=True).stdout
    for word in (".shared", "call.uni", "call "):
        check(word not in ptx, f"its machine code has '{word}'")
    for word in ("bar.sync 0", "bar.red.popc.u32", "st.release.sys.global.u64", "ld.acquire.sys.global.u64",
                 "atom.relaxed.gpu.global.cas.b64", "v4", "cp.async.bulk.wait_group 0", "fence.proxy.async"):
        check(word in ptx, f"its machine code has no '{word}'")
    print(f"{', '.join(sorted(functions))}: {Path(bitcode).stat().st_size} bytes")


main()
