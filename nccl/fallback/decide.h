// Communicators that go to the other library, and an account of them.
#pragma once

#include "nccl/bootstrap/attendance.h"
#include "nccl/bootstrap/unique_id.h"
#include "nccl/comm/comm.h"

#include <memory>
#include <optional>
#include <string>

namespace occl::nccl {

struct NewComm {
  IdLayout id;
  uint32_t numRanks, rank;
  std::string wish;        // for the other library: why OCCL does not do; "" if it does
  Comm *comm;              // an abort of it ends what is below
  bool mayBeEarly = false; // the process that makes the id may not have made it yet
};

/// Decides with the other ranks of the id, and makes the other library's communicator if it is to
/// be one, with the communicator's device current on this thread. Null without an error: it is
/// OCCL's, on one machine, or as `across` says. Waits for all ranks.
Outcome makeOther(const NewComm &what, std::shared_ptr<OtherComm> &made,
                  std::optional<Across> &across);

/// For the account that OCCL_NCCL_FALLBACK=list asks for, on standard error at the end of the
/// process: a communicator of OCCL's, or, with a reason, of the other library's.
void noteUse(uint32_t numRanks, uint32_t rank, int device, const std::string &why);
/// A function that could not be executed, or a communicator that could not be made.
void noteRefused(const std::string &what, const std::string &why);

/// Whether ncclMemAlloc is the other library's: from this process's first communicator of it on, or
/// from the beginning, with OCCL_NCCL_FALLBACK=all, which opens it.
bool usesOtherMemory();

} // namespace occl::nccl
