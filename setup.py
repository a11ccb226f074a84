"""Puts the native files into the package: liboccl.so.0 with its headers, libnccl.so.2, occl,
occl-doctor, occl-lsp, occl-topo, occl-tune, occlc, occl-run, algorithms, topologies; and
occl_device.bc, where clang 19 is.

They are built by Bazel, after tools/setup.sh has installed what that takes; or taken from the
folder OCCL_PREBUILT, which has them beside each other or in lib/ and bin/. All else is in
pyproject.toml.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "packaging"))
from glibc import needed_glibc  # noqa: E402
# Where Bazel puts them.
NATIVE = {
    "liboccl.so.0": "packaging/liboccl.so.0",
    "libnccl.so.2": "nccl/libnccl.so.2",
    "occl": "tools/occl/occl",
    "occl-doctor": "tools/occl/occl-doctor",
    "occl-lsp": "tools/occl-lsp/occl-lsp",
    "occl-topo": "tools/occl-topo/occl-topo",
    "occl-tune": "tools/occl-tune/occl-tune",
    "occlc": "tools/occlc/occlc",
    "occl-run": "tools/occl-run/occl-run",
}

# A target of this folder, which has no file without clang 19.
BITCODE = "runtime/cuda/bitcode/occl_device.bc"


def build_with_bazel():
    subprocess.run([ROOT / "tools/setup.sh"], cwd=ROOT, check=True)
    targets = [f"//{path.rpartition('/')[0]}:{name}" for name, path in NATIVE.items()]
    targets.append("//" + BITCODE.rpartition("/")[0])
    flags = os.environ.get("OCCL_BUILD_FLAGS", "").split()  # of `make package`
    subprocess.run([ROOT / "tools/dev/bazel.sh", "build", "--show_progress",
                    "--show_progress_rate_limit=30", *flags, *targets], cwd=ROOT, check=True)


def native_files():
    """Name to path, of all files."""
    prebuilt = os.environ.get("OCCL_PREBUILT")
    if not prebuilt:
        build_with_bazel()
        return {name: ROOT / "bazel-bin" / path for name, path in NATIVE.items()}
    found = {}
    for name in NATIVE:
        places = [Path(prebuilt, folder, name) for folder in ("", "lib", "lib/occl/nccl", "bin")]
        found[name] = next((place for place in places if place.is_file()), None)
        if found[name] is None:
            raise SystemExit(f"OCCL_PREBUILT is '{prebuilt}', where {name} is missing; looked for "
                             + ", ".join(map(str, places)))
    return found


def bitcode_file():
    """occl_device.bc, beside what native_files() gives; None if there is none."""
    prebuilt = os.environ.get("OCCL_PREBUILT")
    places = [Path(prebuilt, folder, "occl_device.bc") for folder in ("", "lib/occl")] if prebuilt else [
        ROOT / "bazel-bin" / BITCODE]
    return next((place for place in places if place.is_file()), None)


class BuildWithNative(build_py):
    def run(self):
        if self.editable_mode:
            build_with_bazel()  # the package finds bazel-bin beside itself
            return super().run()
        shutil.rmtree(self.build_lib, ignore_errors=True)  # modules that are gone
        super().run()
        folder = Path(self.build_lib, "occl", "_native")
        folder.mkdir(parents=True)
        for name, path in native_files().items():
            shutil.copy(path, folder / name)
            (folder / name).chmod(0o755)
        bitcode = bitcode_file()
        if bitcode:
            shutil.copy(bitcode, folder)
        headers = folder / "include"  # PyTorch's backend is compiled against them
        headers.mkdir()
        for path in sorted((ROOT / "runtime" / "api").glob("occl*.h")):
            shutil.copy(path, headers)
        # Beside the package, where Python looks for it when it starts (occl/_nccl/preload.py).
        shutil.copy(ROOT / "python" / "occl_nccl.pth", self.build_lib)
        for kind, suffix in (("algorithms", ".coll"), ("topologies", ".topo")):
            for path in sorted((ROOT / kind).rglob("*" + suffix)):
                target = folder / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)


class NativeWheel(bdist_wheel):
    """One wheel for every Python: what is native in it is no extension module."""

    def get_tag(self):
        folder = Path(self.bdist_dir or ".", "occl", "_native")
        if not folder.is_dir():
            folder = Path(self.get_finalized_command("build_py").build_lib, "occl", "_native")
        minor = max(needed_glibc(folder / name) for name in NATIVE)
        return "py3", "none", f"manylinux_2_{minor}_x86_64"


class NoSdist(sdist):
    def run(self):
        raise SystemExit("there is no source distribution: the compiler and the runtime are built "
                         "from a clone of the repository")


class NativeDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=NativeDistribution,
      cmdclass={"build_py": BuildWithNative, "bdist_wheel": NativeWheel, "sdist": NoSdist})
