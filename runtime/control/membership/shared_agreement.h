// The agreement of ranks that share memory: members and verdict are words in rank 0's segment,
// which whoever comes first changes by compare-and-swap. Memory of a dead rank stays mapped.
#pragma once

#include "runtime/control/fabric.h"
#include "runtime/control/membership/agreement.h"

namespace occl::daemon {

class SharedAgreement final : public Agreement {
public:
  explicit SharedAgreement(const Fabric &fabric) : fabric(fabric) {}

  void begin(std::chrono::milliseconds) override {}
  StatusOr<Agreed> agree(const std::vector<bool> &excluded, const MemberOffer &offer,
                         const Deadline &deadline) override;
  MemberOffer offerOf(uint32_t member) const override;
  uint64_t attempt() const override { return current; }
  StatusOr<Verdict> conclude(const std::vector<uint32_t> &members, bool formed,
                             const Deadline &deadline) override;
  void abandon() override {}

private:
  StatusOr<std::vector<uint32_t>> awaitDecision(const Deadline &deadline);
  bool propose(uint64_t decided, bool isLate);
  bool isExcluded(uint32_t r) const;
  StatusOr<std::vector<uint32_t>> readDecision(uint64_t decided);
  Status leftOut(const std::string &why) { return outcome = notAMember(fabric.rank(), why); }

  const Fabric &fabric;
  uint32_t current = 0;
  Status outcome; // of a rank that is left out
};

} // namespace occl::daemon
