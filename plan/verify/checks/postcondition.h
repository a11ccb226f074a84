// Proof 5: executed on symbols, the plan leaves in every output chunk that the collective promises
// the reduction of exactly the promised contributions, and what is reduced passed exactly one
// reduction marked final.
#pragma once

#include "plan/verify/checks/execution.h"
#include "plan/verify/checks/symbolic.h"

namespace occl::plan::verify {

/// Expects a plan that passed proofs 1 to 4, which make the result the same in every order of
/// execution.
Finding checkPostcondition(const Network &network, const Execution &execution, AliasMode mode,
                           const Keys &keys);

/// What is wrong with a value. An empty text if its contributions are the right ones.
struct Explanation {
  Code code = Code::Missing;
  std::string text;
  /// Where a contribution is counted twice, and the ways that contributions took.
  std::vector<Note> witness;
};

/// Which of the `expected` contributions to result number `result` are missing or counted twice,
/// and which were not asked for. `steps` is the record of a whole execution.
Explanation explainContributions(const Plan &plan, const Symbolic &symbolic,
                                 const std::vector<Symbolic::Step> &steps, uint32_t result,
                                 const std::vector<Contribution> &expected);

} // namespace occl::plan::verify
