// All passes. Each runs on a module with one program and is the file of the same name. They form the phases of
// compiler/driver/Pipeline.h in the order in which they stand here; docs/compiler-passes.md explains them.
#ifndef OCCL_COMPILER_PASSES_PASSES_TD
#define OCCL_COMPILER_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===--- chunk ---===//

def ChunkParallelize : Pass<"chunk-parallelize", "::mlir::ModuleOp"> {
  let summary = "cuts ops into the parts that the program asks for";
  let description = [{
    Requires: chunk.program. Ensures: no hint asks for parts any more. Every chunk is cut into as many as the least
    common multiple of all parts, and the header with it; an op of p parts is p ops, part k on the channel and the
    thread blocks asked for plus k times one more than the largest that the program names. `instances` multiplies the
    parts of all ops. With `share-channels` all parts stay on the channel asked for unless the
    program names thread blocks, so that inst-assign-thread-blocks can choose,
    or neighbouring parts be one message. The pieces of a chunk stand together, so that each element goes the way that it
    would go uncut; a part of a range of several chunks is a contiguous range, and which parts depend on each other
    follows from the ranges as always. Refuses a program whose parts need more chunks, channels or thread blocks than a
    plan may have.
  }];
  let options = [
    Option<"instances", "instances", "uint32_t", "1", "into how many parts to cut every op, more than it asks for">,
    Option<"shareChannels", "share-channels", "bool", "false", "leave all parts of an op on the channel that it asks for">,
  ];
}

def ChunkMarkFinal : Pass<"chunk-mark-final", "::mlir::ModuleOp"> {
  let summary = "marks the reductions that complete what the collective asks for";
  let description = [{
    Requires: chunk.program. Ensures: `final` is set on exactly those reductions whose result is, unchanged, in an
    output chunk that the collective requires at the end, so that `average` divides there and once; on none if the result
    of one of them is reduced further (a scan). Refuses nothing.
  }];
}

//===--- chunk to inst ---===//

def LowerChunks : Pass<"lower-chunks", "::mlir::ModuleOp"> {
  let summary = "turns copies and reductions into instructions of ranks";
  let description = [{
    Requires: chunk.program. Ensures: an inst.program in its place; each op is one instruction on the rank of its
    destination, and each operand from another rank is a transfer: a send there, and a source here, so that nothing is
    staged; several operands from one rank come on channels of their own. An op is split where the chunks of a scratch range have extents that do not follow each other. Sets
    `uniform_chunks` where a value ends in a place of another extent. Thread blocks and groups asked for are on the
    instructions; no later pass joins instructions that ask for different blocks. Refuses local ops that ask for two
    thread blocks.
  }];
  let dependentDialects = ["::occl::inst::InstDialect"];
}

//===--- inst ---===//

def InstPropagateCopies : Pass<"inst-propagate-copies", "::mlir::ModuleOp"> {
  let summary = "reads the original instead of a copy";
  let description = [{
    Requires: transfers, not connections. Ensures: what reads nothing but chunks of local copies with one distance to their
    originals, which nobody has overwritten since, reads the originals; local instructions whose result nobody reads any
    more are gone. Leaves a read where the original would overlap in part with what the instruction writes. Undone as a whole
    if the program then would not complete at its depth. Refuses nothing.
  }];
}

def InstMergeMulticast : Pass<"inst-merge-multicast", "::mlir::ModuleOp"> {
  let summary = "sends a value that goes to several ranks once";
  let description = [{
    Requires: transfers, not connections. Ensures: sends of the same range with the same content to different
    ranks are one transfer with several receivers, at the place of the first. Undone as a whole if the program then would
    not complete at its depth. Refuses nothing.
  }];
}

def InstFuse : Pass<"inst-fuse", "::mlir::ModuleOp"> {
  let summary = "stores and passes on what arrives, in one instruction";
  let description = [{
    Requires: transfers, not connections. Five rules, exact on ranges: a copy of a result in scratch is done by the
    instruction that computes it, if all who read the result can read the copy; what arrives for one reduction only is a source
    of it (recv_reduce_copy); with `reassociate`, a reduction whose result is the first source of another, and of nothing
    else, is reduced there, left to right as before; a send of exactly what an instruction received, or reduced from what it received, is a destination of
    that instruction (recv_copy_send, recv_reduce_copy_send; lists where there are several); a store that nobody reads is
    dropped (recv_reduce_send). Messages move only past those of other connections. Transfers whose fusion keeps the
    program from completing at its depth stay apart, and so do instructions that ask for different thread blocks. Without
    `fold-arrivals` what arrives for a reduction is stored first, so that several thread blocks can receive. Values
    that more than `max-fan-out` messages pass on stay apart from them, so that several thread blocks can send. Ensures:
    scratch that is no longer used is gone.
  }];
  let options = [
    Option<"reassociate", "reassociate", "bool", "false", "16-bit floats may be rounded less often">,
    Option<"foldArrivals", "fold-arrivals", "bool", "true", "let reductions take what arrives">,
    Option<"maxFanOut", "max-fan-out", "uint32_t", "4294967295", "messages that may pass a value on in the instruction that computes it">,
  ];
}

def InstAggregate : Pass<"inst-aggregate", "::mlir::ModuleOp"> {
  let summary = "moves neighbouring chunks in one message";
  let description = [{
    Requires: transfers, not connections. Ensures: messages of one connection whose sender and receivers work on
    neighbouring ranges of consecutive extents, in one group, and do not depend on what stands between, are one, along
    all instructions that pass them on; likewise local copies and reductions, if `local` is set. The program still completes at
    every depth at which it did. Refuses nothing.
  }];
  let options = [
    Option<"local", "local", "bool", "true", "join local copies and reductions as well">,
  ];
}

def InstAssignThreadBlocks : Pass<"inst-assign-thread-blocks", "::mlir::ModuleOp"> {
  let summary = "gives each end of a connection to one thread block";
  let description = [{
    Requires: transfers. Ensures: connections, as few as sources, sets of destinations and channels asked for; every
    instruction has a thread block; the instructions at one end of a connection have the same. Channels and thread
    blocks asked for are used. With two or more `max-thread-blocks`, tries to give flows (messages that instructions tie
    together) channels of their own, so that they can have thread blocks of their own; and to give the blocks equal work, work of
    the same time, work with the same ranks, or what can begin when they are free. Keeps what a schedule lets end first, several tiles one after the other, and of that
    what takes the fewest connections. `colors` and `layout` say what to take instead. Local instructions stay with the message before
    them, or with `spread-local` are distributed as well. Without a number, the blocks are as many
    as the channels and thread blocks that the source names, and one if it names none. Refuses an end of a
    connection with two owners, channels and thread blocks that are not allowed, and a program whose messages have
    different orders at the ends of a connection.
  }];
  let options = [
    Option<"maxThreadBlocks", "max-thread-blocks", "uint32_t", "0", "thread blocks a rank may have; 0: as few as the source asks for">,
    Option<"maxChannels", "max-channels", "uint32_t", "4096", "channels between two ranks">,
    Option<"colors", "colors", "uint32_t", "0", "over how many thread blocks to spread flows; 0: as the schedule says">,
    Option<"layout", "layout", "std::string", "\"auto\"", "what thread blocks share: balanced (the work), phases (the time), peers (the other ranks), or earliest (who is free first); auto: as the schedule says">,
    Option<"spreadLocal", "spread-local", "bool", "false", "distribute local instructions like others">,
    ListOption<"weights", "weights", "uint32_t", "how long steps take, see compiler/analysis/StepWeights.h; none: as on GPUs at a switch">,
  ];
}

def InstSchedule : Pass<"inst-schedule", "::mlir::ModuleOp"> {
  let summary = "orders the instructions by how much waits for them";
  let description = [{
    Requires: connections and thread blocks. Ensures: each rank's order is that of one execution of the whole
    program at the declared depth; so it cannot deadlock at that depth. Several orders are tried in programs of up to
    32,768 instructions, and what is predicted to end first is kept: the longest path behind an instruction first, counted
    in instructions or in durations; the longest path through it first; the order of the source. Larger programs
    get the first of these. If the program needs a greater depth, raises it, up to `max-depth`. Refuses a
    program that no depth up to this lets complete.
  }];
  let options = [
    Option<"maxDepth", "max-depth", "uint32_t", "64", "greatest depth that the plan may get">,
    ListOption<"weights", "weights", "uint32_t", "how long steps take, see compiler/analysis/StepWeights.h; none: as on GPUs at a switch">,
  ];
}

def InstSynchronize : Pass<"inst-synchronize", "::mlir::ModuleOp"> {
  let summary = "adds the fewest waits between thread blocks";
  let description = [{
    Requires: thread blocks. Ensures: each instruction depends on those of other thread blocks of its rank that memory
    makes it wait for, except where other waits or the order of a block imply it. Refuses nothing.
  }];
}

def InstUseDirectAccess : Pass<"inst-use-direct-access", "::mlir::ModuleOp"> {
  let summary = "loads from and stores to the buffers of other ranks instead of sending";
  let description = [{
    Requires: a scheduled and synchronized program. Ensures: within groups (`groups` has the number of each rank's group;
    without it, `group-size` consecutive ranks are one), what an instruction receives it loads from the sender's buffer, or the sender stores it where it was to be received, and the
    instructions that only sent or received are gone; signals and waits order what the messages did, and keep each rank
    from ending before others have left its memory. A transfer stays as it is where the accesses would come in another
    order, a write would have to wait for another rank, or connections and peers' buffers would meet in an
    instruction that cannot be split; and two reductions in place of one only with `reassociate`. Refuses a program whose ranks' orders do not complete.
  }];
  let options = [
    Option<"groupSize", "group-size", "uint32_t", "4294967295", "ranks that access each other's memory">,
    ListOption<"groups", "groups", "uint32_t", "the group of each rank, in place of group-size">,
    Option<"reassociate", "reassociate", "bool", "false", "16-bit floats may be rounded more often">,
  ];
}

#endif
