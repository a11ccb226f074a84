"""A plan: one collective, compiled, for all its ranks."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _library
from ._errors import Error, InvalidPlanError
from ._plan import cbor, layout

if TYPE_CHECKING:
    from .diagnostics import Diagnostic
    from .draw import Drawing
    from .prediction import Prediction

_PathLike = str | os.PathLike[str]


class Plan:
    """What occlc has made of a program, and verified. Immutable; any thread may use it.

    Made by occl.compile, occl.load and occl.from_msccl. The file format is docs/plan.md.
    """

    def __init__(self, data: bytes, warnings: tuple[Diagnostic, ...] = ()):
        self.data = data
        """The plan's file: JSON or CBOR."""
        self.warnings = warnings
        """What the compiler warned of."""
        self._is_json = cbor.is_json(data)
        self._loaded: int | None = None
        self._lock = threading.Lock()
        self._layouts: dict[int, layout.RankLayout] = {}

    @cached_property
    def document(self) -> dict[str, Any]:
        """The plan as docs/plan.md describes its file. Not to be changed."""
        if self._is_json:
            import json

            try:
                document = json.loads(self.data)
            except ValueError as error:
                raise InvalidPlanError(f"the plan is no JSON: {error}") from None
        else:
            document = cbor.decode(self.data)
        if not isinstance(document, dict) or "numRanks" not in document:
            raise InvalidPlanError("this is no plan: it has no member numRanks")
        return document

    @property
    def name(self) -> str:
        """Of the algorithm."""
        return str(self.document["name"])

    @property
    def collective(self) -> str:
        """'allreduce', 'allgather', ..., or the name of one of the user's own."""
        return str(self.document["collective"])

    @property
    def ranks(self) -> int:
        """For how many ranks it is."""
        return int(self.document["numRanks"])

    @property
    def protocol(self) -> str:
        """'Simple', 'LL' or 'LL128'."""
        return str(self.document["protocol"])

    @property
    def instructions(self) -> int:
        """How many instructions all ranks have together."""
        return sum(len(block) for rank in self.document["ranks"] for block in rank["threadBlocks"])

    def _of_rank(self, rank: int) -> layout.RankLayout:
        """How many elements the buffers of a rank have."""
        if not hasattr(rank, "__index__"):
            raise TypeError(f"rank is a {type(rank).__name__}; it is an int")
        found = self._layouts.get(rank)
        if found is None:
            if not 0 <= rank < self.ranks:
                raise IndexError(f"plan '{self.name}' has {self.ranks} ranks and no rank {rank}")
            found = self._layouts[rank] = layout.RankLayout(self.document, rank)
        return found

    def save(self, path: _PathLike) -> Path:
        """Writes the plan: CBOR if the name ends in .cbor, else JSON. occl-run --plan reads it."""
        path = Path(path)
        if (path.suffix == ".cbor") != self._is_json:
            data = self.data
        elif self._is_json:
            data = cbor.encode(self.document)
        else:
            import json

            data = json.dumps(self.document).encode()
        path.write_bytes(data)
        return path

    def explain(self, rank: int | None = None, *, thread_block: int | None = None,
                bytes: int | str | None = None, topology: _PathLike | None = None,
                define: dict[str, Any] | None = None) -> str:
        """What every thread block does, when, and what it waits for: `occlc explain`. `bytes` are
        those of a part, such as 65536 or '1MiB'; `define` are parameters of the topology."""
        from . import _occlc

        options = _occlc.prediction_options(bytes, topology, define)
        if rank is not None:
            self._of_rank(rank)
            options += ["--rank", str(rank)]
        if thread_block is not None:
            options += ["--thread-block", str(thread_block)]
        return _occlc.on_plan("explain", self.data, options)

    def predict(self, bytes: int | str, *, topology: _PathLike | None = None,
                define: dict[str, Any] | None = None) -> Prediction:
        """How long it takes on a machine (docs/cost_model.md): on the topology, or where ranks
        share memory. `bytes` are those of a part."""
        from .prediction import predict

        return predict(self, bytes, topology, define)

    def draw(self, *, bytes: int | str = "1MiB", topology: _PathLike | None = None,
             define: dict[str, Any] | None = None,
             trace: _PathLike | None = None) -> Drawing:
        """The schedule as a page, which a notebook shows and save() writes (`occlc view`): a lane
        for each thread block of each rank, an arrow for each message, as the cost model predicts
        it for `bytes` a part; below that the runs of the plan in `trace`, a file that
        `occl-run --trace` or Communicator.trace has written."""
        from .draw import draw

        return draw(self, bytes=bytes, topology=topology, define=define, trace=trace)

    def trace(self, path: _PathLike, *, bytes: int | str = "1MiB",
              topology: _PathLike | None = None, define: dict[str, Any] | None = None) -> Path:
        """Writes the predicted schedule for ui.perfetto.dev: `occlc trace`."""
        from . import _occlc

        options = _occlc.prediction_options(bytes, topology, define)
        Path(path).write_text(_occlc.on_plan("trace", self.data, options), encoding="utf-8")
        return Path(path)

    def to_msccl(self, path: _PathLike | None = None, *, runtime: str = "msccl") -> str:
        """MSCCL XML (docs/interchange.md), also into the file `path`. runtime='rccl' uses that
        one's names of collectives."""
        from . import _occlc

        text = _occlc.on_plan("export", self.data, ["--runtime", runtime])
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _native(self) -> int:
        """The library's occlPlan_t, loaded and verified at the first use; valid as long as this
        object."""
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = _load(self)
        return self._loaded

    def __repr__(self) -> str:
        try:
            return f"<occl.Plan {self.name}: {self.collective} of {self.ranks} ranks>"
        except Error as error:
            return f"<occl.Plan: {error}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self.data, self.warnings)


def _load(plan: Plan) -> int:
    import tempfile

    library = _library.library()
    handle = ctypes.c_void_p()
    with tempfile.NamedTemporaryFile(prefix="occl-") as file:
        file.write(plan.data)
        file.flush()
        _library.check(library.occlPlanLoad(os.fsencode(file.name), ctypes.byref(handle)))
    assert handle.value is not None
    weakref.finalize(plan, library.occlPlanDestroy, handle.value).atexit = False
    return handle.value


def load(path: _PathLike) -> Plan:
    """A plan file, JSON or CBOR, verified. InvalidPlanError says what is wrong with it."""
    library = _library.library()
    handle = ctypes.c_void_p()
    _library.check(library.occlPlanLoad(os.fsencode(path), ctypes.byref(handle)))
    assert handle.value is not None
    try:
        plan = Plan(Path(path).read_bytes())
    except BaseException:
        library.occlPlanDestroy(handle)
        raise
    plan._loaded = handle.value
    weakref.finalize(plan, library.occlPlanDestroy, handle.value).atexit = False
    return plan
