"""Labels of counters as Prometheus reads them; the counters themselves are written by the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._errors import InvalidArgumentError


def label_list(labels: Mapping[str, Any]) -> str:
    """Names and quoted values. InvalidArgumentError for a name that ends before the value; what
    else is wrong with names the library says."""
    for name in labels:
        if "=" in name:
            raise InvalidArgumentError(f"'{name}' is no name for a label")
    return ",".join(f'{name}="{_escaped(str(of))}"' for name, of in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
