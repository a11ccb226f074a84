// The plan's witnesses, checked: orders between two instructions of a rank that lead through other
// ranks. See Witness in plan/model/plan.h.
#pragma once

#include "plan/verify/checks/network.h"

namespace occl::plan::verify {

/// That much is known from one witness.
struct KnownOrder {
  uint32_t later, earlier;
  /// False: every place on the way receives from the one before and passes on slice by slice, so
  /// the earlier one is only ahead of the later one, slice by slice. What precedes it is complete.
  bool isComplete;
};

class KnownOrders {
public:
  /// Of an instruction, in its rank.
  std::span<const KnownOrder> of(uint32_t later) const;
  std::span<const KnownOrder> all() const { return orders; }

private:
  friend Finding checkWitnesses(const Network &network, KnownOrders &known);
  std::vector<KnownOrder> orders; // ascending by `later`
};

/// Fills `known`. An error if a witness names an instruction that does not exist, ends on another
/// rank than it began, or takes a step that is no order.
Finding checkWitnesses(const Network &network, KnownOrders &known);

} // namespace occl::plan::verify
