"""How long a plan is predicted to take."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _occlc
from ._errors import InternalError

if TYPE_CHECKING:
    from .plan import Plan

_LINE = re.compile(r"^ +a part +time +bound by\n"
                   r" +\d\S* \w+ +(?P<time>[\d.]+) (?P<unit>ns|us|ms|s)"
                   r" +(?P<bound>\S.*(?:\n {29}\S.*)*)$", re.MULTILINE)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class Prediction:
    """What the cost model says of a plan, as str() the text of `occlc stats`."""

    seconds: float
    """To the end of the last rank."""
    bound: str
    """What it mostly waits for."""
    text: str

    def __str__(self) -> str:
        return self.text


def predict(plan: Plan, size: int | str, topology: str | os.PathLike[str] | None,
            define: dict[str, Any] | None) -> Prediction:
    options = _occlc.prediction_options(size, topology, define)
    text = _occlc.on_plan("stats", plan.data, options)
    found = _LINE.search(text)
    if found is None:
        raise InternalError(f"occlc stats has printed something else than a prediction: {text}")
    seconds = float(found["time"]) * _SECONDS[found["unit"]]
    return Prediction(seconds, " ".join(found["bound"].split()), text)
