// What reductions give, for all that checks fold.h: written from the operations' definitions, and
// shares no code with it.
#pragma once

#include "runtime/api/occl_types.h"

#include <cmath>
#include <type_traits>

namespace occl::reference {

/// Two values as one. Integers wrap around; an average is a sum, to be divided by the number of
/// ranks; where one is no number, nor is the result.
template <class T> T reduce(occlRedOp_t op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b))
      return a + b;
  using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                               std::type_identity<T>>::type;
  switch (op) {
  case occlProd:
    return static_cast<T>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
  case occlMin:
    return b < a ? b : a;
  case occlMax:
    return a < b ? b : a;
  case occlSum:
  case occlAvg:
    break;
  }
  return static_cast<T>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
}

} // namespace occl::reference
