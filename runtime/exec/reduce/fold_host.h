// Fold kernels for the processor that this runs on.
#pragma once

#include "runtime/base/data_type.h"

#include <cstdint>

namespace occl::interpreter {

/// pointers: the sources, then the destinations, at least one of each, of any alignment. A
/// destination is disjoint from or exactly equal to each source. By a divisor of more than 1 each
/// float is divided before it is added, so that the sum overflows no sooner than it must, and the
/// sum of integers.
using FoldFunction = void (*)(char *const *pointers, unsigned numSources, unsigned numDestinations,
                              uint64_t elements, uint64_t divisor);

/// Each element times the factor, an element of the type; floats of less than 32 bits are
/// multiplied as floats and rounded once. Of any alignment; `to` is disjoint from or equal to
/// `from`.
using MultiplyFunction = void (*)(char *to, const char *from, uint64_t elements,
                                  const void *factor);

struct FoldTable {
  FoldFunction functions[kNumDataTypes][kNumReduceOps];
  MultiplyFunction multiply[kNumDataTypes];
};

/// What each element of an input becomes before it is reduced.
struct Scale {
  /// It is multiplied by this element of the type; null: by nothing.
  const void *factor = nullptr;
  /// Floats are divided by this; 1: by nothing. Not both.
  uint64_t divisor = 1;

  bool isNone() const { return !factor && divisor == 1; }
};

/// Chosen once by what the processor can do. Any thread.
const FoldTable &foldTable();

/// The same bytes in every destination. As FoldFunction, with one source.
void copyToAll(char *const *pointers, unsigned numDestinations, uint64_t bytes);

/// The elements at `from`, scaled, to `to`, which is disjoint from them. As MultiplyFunction.
void scaleElements(DataType type, const Scale &scale, char *to, const char *from,
                   uint64_t elements);

} // namespace occl::interpreter
