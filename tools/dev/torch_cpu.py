#!/usr/bin/env python3
"""Sets PyTorch up for work on CPUs, without the 2.7 GB of CUDA libraries that its wheel asks for.

    tools/dev/torch_cpu.py 2.11.0        prints the path of a Python that can `import torch`

PyPI's wheel for Linux is linked against CUDA's libraries, so that it cannot be imported without
them. Taken are the wheel itself (530 MB), CUDA's runtime and profiling libraries (13 MB), which are
called when torch is imported, and Python packages that torch imports. For the other libraries there
are stand-ins, made here by gcc from the names that torch refers to: a call of one of them ends the
process with a text that says so. Nothing of that is called on CPUs.

It is kept in $OCCL_TORCH_CACHE (default: ~/.cache/occl-torch), a folder for each version, and made
once. Needs python3-venv, g++ and a package index.

Exit status: 0 done, 3 the package index cannot be reached, 1 anything else.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# Wheels of these versions must be these; others are checked against the index's own sums by pip.
SHA256 = {
    "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl":
        "7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a",
    "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl":
        "48c2d861134c0b5697c7602cb5ffa68f62a2989fdcd1717e593356f67996ca1e",
}
# numpy and expecttest are for tensors as arrays and for torch's own test suite.
PACKAGES = ["filelock", "typing-extensions>=4.13", "sympy>=1.13.3", "networkx", "jinja2", "fsspec",
            "numpy", "expecttest", "pytest"]
EXIT_NO_INDEX = 3


class Failure(Exception):
    def __init__(self, text: str, status: int = 1):
        super().__init__(text)
        self.status = status


def say(text: str) -> None:
    print(f"torch_cpu: {text}", file=sys.stderr, flush=True)


def run(*command: str | Path, what: str) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode == 0:
        return done.stdout
    text = (done.stderr or done.stdout).strip()
    unreachable = re.search(r"Temporary failure in name resolution|Network is unreachable|"
                            r"NewConnectionError|Connection refused|ProxyError|ConnectTimeout", text)
    last = "\n  ".join(text.splitlines()[-6:])
    raise Failure(f"{what} failed:\n  {last}", EXIT_NO_INDEX if unreachable else 1)


def cuda_packages(metadata: str) -> list[str]:
    """CUDA's runtime and profiling libraries, in the version that the wheel's metadata asks for."""
    named = re.findall(r"^Requires-Dist: (nvidia-cuda-(?:runtime|cupti)-cu\d+\s*\(?==[\d.]+)",
                       metadata, re.M)
    if named:
        return [re.sub(r"[\s(]", "", n) for n in named]
    toolkit = re.search(r"^Requires-Dist: cuda-toolkit.*==(\d+\.\d+)", metadata, re.M)
    if toolkit:
        return [f"nvidia-cuda-{n}=={toolkit[1]}.*" for n in ("runtime", "cupti")]
    raise Failure("the wheel's metadata name no CUDA version that this script knows")


def dynamic_symbols(library: Path, which: str) -> set[tuple[str, str]]:
    """(name, version) of the defined or undefined dynamic symbols; weak undefined ones are left."""
    found = set()
    for line in run("nm", "-D", f"--{which}-only", library, what=f"nm {library}").splitlines():
        kind, name = line.split()[-2:]
        if which == "undefined" and kind in "wv":
            continue
        name, _, version = name.partition("@")
        found.add((name, version.lstrip("@")))
    return found


def needed(library: Path) -> list[str]:
    text = run("readelf", "-d", library, what=f"readelf {library}")
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def make_stand_ins(site: Path) -> int:
    """Libraries in torch/lib for the SONAMEs that are missing. Returns how many."""
    lib = site / "torch" / "lib"
    ours = sorted(lib.glob("*.so*"))
    cuda = sorted((site / "nvidia").glob("*/lib/*.so*"))
    cached = run("/sbin/ldconfig", "-p", what="ldconfig")
    there = {p.name for p in ours + cuda} | set(re.findall(r"^\s*(\S+) \(", cached, re.M))
    cuda_names = re.compile(r"lib(cu|nv|nccl)")
    missing = sorted({n for p in ours for n in needed(p)
                      if n not in there or (cuda_names.match(n) and n not in
                                            {p.name for p in ours + cuda})})
    strange = [n for n in missing if not cuda_names.match(n)]
    if strange:
        raise Failure(f"torch needs {', '.join(strange)}, which this system lacks")
    defined = {name for p in ours + cuda for name, _ in dynamic_symbols(p, "defined")}
    wanted = {s for p in ours for s in dynamic_symbols(p, "undefined")
              if s[0] not in defined and not re.match(r"_?Py", s[0])}
    library_of = {v: soname for p in ours for v, soname in required_versions(p)}
    # Symbols with a version of a library are in that library; those without any may be anywhere.
    for i, soname in enumerate(missing):
        versioned = {}
        for name, version in sorted(wanted):
            if version and library_of.get(version) == soname:
                versioned.setdefault(version, []).append(name)
        plain = sorted(n for n, v in wanted if not v) if i == 0 else []
        compile_stand_in(lib, soname, versioned, plain)
    return len(missing)


def required_versions(library: Path) -> list[tuple[str, str]]:
    """(version, SONAME of the library that has it) of the symbol versions that are asked for."""
    found, soname = [], ""
    for line in run("objdump", "-p", library, what=f"objdump {library}").splitlines():
        if match := re.match(r"\s*required from (\S+):", line):
            soname = match[1]
        elif soname and (match := re.match(r"\s*0x[0-9a-f]+ 0x[0-9a-f]+ \d+ (\S+)", line)):
            found.append((match[1], soname))
        else:
            soname = ""
    return found


def compile_stand_in(lib: Path, soname: str, versioned: dict[str, list[str]],
                     plain: list[str]) -> None:
    lines = ["#include <stdio.h>", "#include <stdlib.h>",
             "static void absent(const char *name) {",
             f'  fprintf(stderr, "%s of {soname} was called, of which there is a stand-in "',
             '          "only: this PyTorch is set up for CPUs\\n", name);', "  abort();", "}"]
    lines += [f'void {n}(void) {{ absent("{n}"); }}' for n in sum(versioned.values(), []) + plain]
    source = lib / f"{soname}.stand_in.c"
    script = lib / f"{soname}.stand_in.lds"
    source.write_text("\n".join(lines) + "\n")
    flags = []
    if versioned:
        script.write_text("".join(f"{version} {{ global: {' '.join(n + ';' for n in names)} }};\n"
                                  for version, names in versioned.items()))
        flags = [f"-Wl,--version-script={script}"]
    run("gcc", "-w", "-fno-builtin", "-shared", "-fPIC", "-O0", f"-Wl,-soname,{soname}", *flags,
        "-o", lib / soname, source, what=f"gcc for {soname}")
    source.unlink()
    script.unlink(missing_ok=True)


def check_sum(wheel: Path) -> None:
    digest = hashlib.sha256()
    with wheel.open("rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    if SHA256.get(wheel.name, digest.hexdigest()) != digest.hexdigest():
        raise Failure(f"{wheel.name} has SHA-256 {digest.hexdigest()}, not the one expected")


def set_up(version: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        run(sys.executable, "-m", "venv", folder, what="python3 -m venv (Debian: python3-venv)")
        pip = [folder / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check"]
        wheels = folder / "wheels"
        say(f"fetching torch {version} (about 530 MB)")
        run(*pip, "download", "--no-deps", "--only-binary=:all:", "-d", wheels,
            f"torch=={version}", what="pip download torch")
        wheel = next(wheels.glob("torch-*.whl"))
        check_sum(wheel)
        metadata = run("python3", "-c", "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); "
                       "print(z.read(next(n for n in z.namelist() if n.endswith("
                       "'.dist-info/METADATA'))).decode())", wheel, what="reading the wheel")
        say("installing it, and what it imports")
        run(*pip, "install", "--no-compile", "--no-deps", wheel, *cuda_packages(metadata),
            what="pip install torch")
        run(*pip, "install", "--no-compile", *PACKAGES, what="pip install")
        shutil.rmtree(wheels)
        site = next((folder / "lib").glob("python3.*/site-packages"))
        say(f"{make_stand_ins(site)} stand-ins for CUDA libraries made")
        run(folder / "bin" / "python", "-c", "import torch, torch.distributed; torch.ones(3).sum()",
            what="import torch")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def python_with_torch(version: str, cache: Path) -> Path:
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    folder = cache / f"torch-{version}-{tag}"
    stamp = folder / "stamp"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"torch-{version}-{tag}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two that start together make one
        if not stamp.exists() or stamp.read_text() != recipe:
            set_up(version, folder)
            stamp.write_text(recipe)
    return folder / "bin" / "python"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version", help="of torch, as on PyPI: 2.11.0")
    parser.add_argument("--cache", type=Path, help="default: $OCCL_TORCH_CACHE, "
                        "or ~/.cache/occl-torch", default=Path(os.environ.get(
                            "OCCL_TORCH_CACHE", Path.home() / ".cache" / "occl-torch")))
    options = parser.parse_args()
    try:
        print(python_with_torch(options.version, options.cache))
    except Failure as failure:
        say(str(failure))
        return failure.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
