"""occl.nccl, and the program occl: each in a process of its own, with host memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import pytest

from occl._errors import LibraryError
from occl._library import native_file


def library() -> Path:
    try:
        return native_file("libnccl.so.2", "OCCL_NCCL_LIBRARY", "nccl/libnccl.so.2")
    except LibraryError as error:
        pytest.fail(str(error))


def run(program: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program), *words], text=True,
                          capture_output=True, timeout=120,
                          env={**os.environ, "OCCL_NCCL_HOST": "1", **settings})


def test_nccl_asked_for_later_is_loaded() -> None:
    library()
    done = run("""
        import ctypes
        import occl.nccl
        nccl = ctypes.CDLL("libnccl.so.2")  # by its name alone, as a library needs it
        comm, x = ctypes.c_void_p(), (ctypes.c_float * 3)(1, 2, 3)
        assert nccl.ncclCommInitAll(ctypes.byref(comm), 1, None) == 0
        assert nccl.ncclAllReduce(x, x, ctypes.c_size_t(3), 7, 0, comm, None) == 0
        assert nccl.ncclCommDestroy(comm) == 0
        print(list(x), occl.nccl.version, nccl.ncclAllReduce.__name__)
    """)
    assert done.stdout.startswith("[1.0, 2.0, 3.0] 22809"), done


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a virtual environment that has the package as it is installed, with its .pth file."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    packages = next(folder.glob("lib/python*/site-packages"))
    root = Path(__file__).parent.parent
    (packages / "a_package_of_the_checkout.pth").write_text(f"{root}\n")
    shutil.copy(root / "occl_nccl.pth", packages)
    return folder / "bin" / "python"


def start(python: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """What libraries with NCCL's name a process has whose program asks for none, and its errors."""
    program = ("print({line.split('/')[-2] for line in open('/proc/self/maps')"
               " if 'libnccl.so' in line})")
    clean = {key: value for key, value in os.environ.items()
             if key not in ("PYTHONPATH", "OCCL_NCCL_PRELOAD")}
    return subprocess.run([python, "-c", program], text=True, capture_output=True, timeout=120,
                          env={**clean, "OCCL_NCCL_LIBRARY": str(library()), **settings})


def test_a_process_without_ld_preload_has_it_if_it_is_asked_for(installed: Path) -> None:
    done = start(installed, OCCL_NCCL_PRELOAD="1")
    assert done.stdout == f"{{'{library().parent.name}'}}\n" and not done.stderr, done
    done = start(installed)
    assert done.stdout == "set()\n" and not done.stderr, done
    done = start(installed, OCCL_NCCL_PRELOAD="0")
    assert done.stdout == "set()\n" and not done.stderr, done


def test_a_process_that_has_one_by_ld_preload_keeps_it(installed: Path, tmp_path: Path) -> None:
    other = tmp_path / "libnccl.so.2"
    shutil.copy(library(), other)
    done = start(installed, OCCL_NCCL_PRELOAD="1", LD_PRELOAD=str(other))
    assert done.stdout == f"{{'{tmp_path.name}'}}\n" and not done.stderr, done


def test_a_process_for_which_there_is_none_starts_and_says_so(installed: Path) -> None:
    done = start(installed, OCCL_NCCL_PRELOAD="1", OCCL_NCCL_LIBRARY="/no/such/file")
    assert done.stdout == "set()\n" and done.returncode == 0, done
    assert "OCCL is not in the place of NCCL: OCCL_NCCL_LIBRARY is '/no/such/file'" in done.stderr


def test_another_one_that_is_loaded_is_named(tmp_path: Path) -> None:
    other = tmp_path / "libnccl.so.2"
    shutil.copy(library(), other)
    done = run("""
        import ctypes, sys
        ctypes.CDLL(sys.argv[1])
        try:
            import occl.nccl
        except Exception as error:
            print(type(error).__name__, error)
    """, str(other))
    assert done.stdout.startswith("LibraryError another NCCL is loaded already"), done
    assert str(other) in done.stdout


def test_without_the_library_it_says_so() -> None:
    done = run("import occl.nccl", OCCL_NCCL_LIBRARY="/no/such/file")
    assert "OCCL_NCCL_LIBRARY is '/no/such/file', which is no file" in done.stderr
