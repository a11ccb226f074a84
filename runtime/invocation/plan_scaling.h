// What of a plan says whether its calls may scale their inputs: multiply them by a factor of the
// rank, or divide them for an average of floats.
#pragma once

#include "plan/model/plan.h"
#include "runtime/base/data_type.h"

namespace occl::daemon {

/// Whether any instruction reduces.
bool reduces(const plan::Plan &plan);

/// Whether a call of it may multiply its input. On one rank no instruction reduces.
bool mayHaveFactor(const plan::Plan &plan);

/// Whether it is an average whose inputs are divided before anybody reads them. So are those of
/// floats, where there are partial sums: they stay in the range of the type. Integers would lose
/// what each division leaves over. Plans that promise copies as well, or run in place only, divide
/// what the last reduction adds.
bool dividesInputs(const plan::Plan &plan, ReduceOp op, DataType type);

/// The same on devices: of float16 and fp8 alone. To divide is a pass over the input there, and a
/// sum of bfloat16, float or double leaves the type's range only if its inputs nearly do.
bool dividesInputsOnDevice(const plan::Plan &plan, ReduceOp op, DataType type);

} // namespace occl::daemon
