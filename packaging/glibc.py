"""Which glibc a native file asks for: setup.py names a wheel after it."""

import re
from pathlib import Path


def needed_glibc(path: Path) -> int:
    """The minor version of the newest glibc whose symbols the file asks for; 0 if it asks for none, as one that is
    linked statically."""
    return max((int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)", path.read_bytes())), default=0)
