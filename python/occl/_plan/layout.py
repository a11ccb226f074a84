"""How many elements a plan's buffers have (docs/plan.md: buffers, chunks)."""

from __future__ import annotations

from typing import Any

from .._errors import InvalidArgumentError

_GRAIN_BYTES = 128


class Chunking:
    """The rule of plan/model/chunking.h: a part of `count` elements in `chunks` chunks."""

    __slots__ = ("count", "chunks", "grain")

    def __init__(self, count: int, chunks: int, grain: int):
        self.count, self.chunks, self.grain = count, max(chunks, 1), grain

    def begin(self, chunk: int) -> int:
        """First element of a chunk of a part."""
        grains = -(-self.count // self.grain)
        full, rest = divmod(grains, self.chunks)
        return min((full * chunk + rest * chunk // self.chunks) * self.grain, self.count)

    def begin_in_buffer(self, chunk: int) -> int:
        """First element of a chunk of a buffer of any number of parts."""
        return chunk // self.chunks * self.count + self.begin(chunk % self.chunks)


def has_visible_chunks(document: dict[str, Any]) -> bool:
    """Whether chunks begin at any element, as users can see where they do."""
    return bool(document["requirements"] or not document.get("postcondition", True)
                or document["uniformChunks"])


class RankLayout:
    """The buffers of one rank, in chunks, and in elements for a count."""

    __slots__ = ("input_chunks", "output_chunks", "in_place_offset", "part_chunks", "_is_visible",
                 "_what")

    def __init__(self, document: dict[str, Any], rank: int):
        of_rank = document["ranks"][rank]
        self.input_chunks: int = of_rank["inputChunks"]
        self.output_chunks: int = of_rank["outputChunks"]
        self.in_place_offset: int = of_rank["inPlaceOffset"]
        self.part_chunks: int = document["partChunks"]
        self._is_visible = has_visible_chunks(document)
        self._what = f"rank {rank} of plan '{document['name']}'"

    def chunking(self, count: int, item_bytes: int) -> Chunking:
        grain = 1 if self._is_visible else _GRAIN_BYTES // item_bytes
        return Chunking(count, self.part_chunks, grain)

    def elements(self, chunks: int, count: int, item_bytes: int) -> int:
        return self.chunking(count, item_bytes).begin_in_buffer(chunks)

    def count_of(self, elements: int, is_output: bool, item_bytes: int) -> int:
        """The count for which a buffer has so many elements."""
        chunks = self.output_chunks if is_output else self.input_chunks
        name = "out" if is_output else "the input"
        if chunks == 0:
            raise InvalidArgumentError(f"{self._what} has no {'output' if is_output else 'input'}, "
                                       f"so {name} does not say how many elements a part has: give "
                                       "count=")
        guess = elements * self.part_chunks // chunks
        for count in (guess, guess + 1, guess - 1):
            if count >= 0 and self.elements(chunks, count, item_bytes) == elements:
                return count
        parts = f"{chunks} chunks, {self.part_chunks} to a part"
        raise InvalidArgumentError(f"{name} has {elements} elements; of {self._what} it has "
                                   f"{parts}, and no count of elements of a part gives that many")
