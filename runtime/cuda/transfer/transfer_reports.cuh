// What kernels of transfers say of one of their directions when they give up.
#pragma once

#include "runtime/base/system_words.cuh"
#include "runtime/cuda/kernels/bound.cuh"
#include "runtime/cuda/tables/replay_word.h"
#include "runtime/cuda/transfer/transfer_table.h"

#include <cstdint>

namespace occl::cuda {

/// The two numbers of a direction, which change together: one access of 128 bits, which does not
/// come apart (PTX ISA, scalar type b128).
struct DirectionNumbers {
  uint64_t nextPiece, nextTransfer;

  static __device__ DirectionNumbers load(const DirectionState &state) {
    DirectionNumbers numbers;
    asm volatile("{ .reg .b128 both;\n"
                 "  ld.relaxed.gpu.global.b128 both, [%2];\n"
                 "  mov.b128 {%0, %1}, both; }"
                 : "=l"(numbers.nextPiece), "=l"(numbers.nextTransfer)
                 : "l"(&state.nextPiece)
                 : "memory");
    return numbers;
  }
  __device__ void store(DirectionState &state) const {
    asm volatile("{ .reg .b128 both;\n"
                 "  mov.b128 both, {%1, %2};\n"
                 "  st.relaxed.gpu.global.b128 [%0], both; }" ::"l"(&state.nextPiece),
                 "l"(nextPiece), "l"(nextTransfer)
                 : "memory");
  }
};

/// Functions are called by one lane.
struct TransferReports {
  const TransferArguments &arguments;
  const TransferDirection &direction;
  const DirectionState &state;

  /// `part` of the group has waited too long.
  __device__ void late(uint32_t part) const {
    GivingUp stuck = whereAbouts(part, 0);
    stuck.obstacle = {direction.isSend ? interpreter::BlockReason::Credit
                                       : interpreter::BlockReason::Data,
                      0, direction.peer};
    giveUp(arguments.bound, stuck);
  }
  /// Another kernel has the direction.
  __device__ void refuseTwo() const { refuse(kTwoReplays, arguments.rank, 0); }
  /// The sender of `part`, whose words of the slot these are, has another count or type. The first
  /// such one is said.
  __device__ void refuseOther(const TransferPart &part, uint32_t which, uint64_t filled,
                              uint64_t count) const {
    if (atomicCAS(&arguments.mismatch->isSaid, 0, 1) != 0)
      return;
    arguments.mismatch->ownCount = part.count;
    arguments.mismatch->otherCount = countIn(count);
    arguments.mismatch->ownType = part.type;
    arguments.mismatch->otherType = typeIn(filled);
    fenceSystem();
    refuse(kOtherCall, direction.peer, which);
  }

private:
  __device__ GivingUp whereAbouts(uint32_t part, uint32_t isBeginning) const {
    GivingUp where{0,          arguments.bound.place, state.nextTransfer + part, {}, {}, blockIdx.x,
                   isBeginning};
    where.context.instruction = direction.isSend;
    return where;
  }
  /// The communicator is to fail.
  __device__ void refuse(uint32_t why, uint32_t peer, uint32_t part) const {
    GivingUp where = whereAbouts(part, 1);
    where.obstacle = {interpreter::BlockReason::Announce, why, peer};
    giveUp(arguments.bound, where);
  }
};

} // namespace occl::cuda
