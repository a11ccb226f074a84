// What an element of an input becomes before it is reduced: for hosts and devices alike. The
// targets supply the loops.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/reduce/fold.h"

#include <cstdint>

namespace occl::interpreter {

/// Elements times a factor, or, of floats, divided. Those of 8 and 16 bits as floats, rounded once;
/// integers wrap around.
template <class Element> struct ElementScale {
  using Storage = typename Element::Storage;

  typename Element::Accumulator factor;
  uint64_t divisor = 1; // else there is no factor

  OCCL_INLINE Storage of(Storage value) const {
    const auto loaded = Element::load(value);
    return Element::store(divisor > 1 ? divide(loaded, divisor) : Product::apply(loaded, factor));
  }
};

} // namespace occl::interpreter
