// Fold kernels for the processor that this runs on.
#pragma once

#include "runtime/base/data_type.h"

#include <cstdint>

namespace occl::interpreter {

/// pointers: the sources, then the destinations, at least one of each, of any alignment. A
/// destination is disjoint from or exactly equal to each source. divisor 1 divides nothing.
using FoldFunction = void (*)(char *const *pointers, unsigned numSources, unsigned numDestinations,
                              uint64_t elements, uint64_t divisor);

struct FoldTable {
  FoldFunction functions[kNumDataTypes][kNumReduceOps];
};

/// Chosen once by what the processor can do. Any thread.
const FoldTable &foldTable();

/// The same bytes in every destination. As FoldFunction, with one source.
void copyToAll(char *const *pointers, unsigned numDestinations, uint64_t bytes);

} // namespace occl::interpreter
