"""Generated: see docs/reference/generate.py. `make reference` writes it anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict

_PathLike = str | os.PathLike[str]


class CompileOptions(TypedDict, total=False):
    """The options of `occlc compile`; docs/compiler.md has more. A flag is True; an option that is
    False or None is not given."""

    # a folder in which to look for imports
    import_path: _PathLike | Sequence[_PathLike]

    # which algorithm of the file, if it has several
    algorithm: str

    # fail where there is a warning
    werror: bool

    # reads, copies and reductions that a program may consist of; without it 4194304, or four
    # for each pair of ranks if that is more
    max_ops: int

    # messages in flight on a connection; raised if the program needs more
    depth: int

    # how buffers may lie in memory: in_place, out_of_place, or all that the algorithm claims
    modes: str

    # smallest size that the plan is meant for
    min_bytes: int

    # largest size that the plan is meant for
    max_bytes: int

    # into how many parts to cut every copy and reduction, each on channels of its own; auto:
    # as the prediction says
    instances: int | str

    # simple, ll or ll128, whatever the source says; auto: as the prediction says
    protocol: str

    # try multicast, aggregation, fan-out and layouts, and keep what is predicted to be
    # fastest: on, off, or auto, for small programs with a topology, and where local
    # instructions go with --direct
    tune: str

    # send a value to each of several ranks apart
    no_multicast: bool

    # keep receiving, reducing and sending apart
    no_fuse: bool

    # keep messages of neighbouring chunks apart
    no_aggregate: bool

    # thread blocks that a rank may have; without it, those that the source asks for
    max_thread_blocks: int

    # how far the depth may be raised
    max_depth: int

    # channels that connections may use
    max_channels: int

    # leave out waits that messages through other ranks imply; for transports that fence
    order_through_ranks: bool

    # make one reduction of several, or several of one, which changes how often 16-bit floats
    # are rounded
    reassociate: bool

    # values that go on in more messages are sent apart from what computes them
    max_fan_out: int

    # what thread blocks have in common: balanced (as much work), phases (its time), peers
    # (the other ranks), earliest (whatever can begin), or auto
    layout: str

    # over how many thread blocks to spread flows; without it, as a schedule says
    colors: int

    # distribute local copies and reductions over all thread blocks, as those of several
    # instances are
    spread_local: bool

    # leave local copies and reductions, also those of several instances, with the message
    # before them
    no_spread_local: bool

    # join local copies and reductions of neighbouring chunks, also those of several instances
    aggregate_local: bool

    # keep local copies and reductions of neighbouring chunks apart, as those of several
    # instances are
    no_aggregate_local: bool

    # store what arrives before it is reduced, so that several thread blocks receive
    no_fold_arrivals: bool

    # leave the parts that --instances makes on the channels of the source
    share_channels: bool

    # let all ranks access each other's buffers: ranks that are threads of one process
    direct: bool

    # the same for groups of so many consecutive ranks; topology: for those of a node of the
    # topology that have links to each other
    direct_groups: int | str

    # check the IR after each pass, too
    verify_each: bool

    # bytes of a part of the buffers for which to predict, such as 65536, 64KiB or 1MiB; at
    # most 1TiB
    bytes: int | str | Sequence[int | str]
