"""Partitioned sends, receives and collectives: buffers that are sent while they are being made
(occl_partitioned.h, docs/partitioned.md). Communicator.psend, precv and pcall make them."""

from .request import Partitioned as Partitioned
