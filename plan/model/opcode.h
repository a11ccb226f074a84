// Opcodes of plan instructions and the shape of each. Shared by host and device code: no
// allocation, no I/O.
#pragma once

#include <cstdint>

namespace occl::plan {

enum class Opcode : uint8_t {
#define OCCL_OPCODE(name, mnemonic) name,
#include "plan/model/opcode.def"
#undef OCCL_OPCODE
};

inline constexpr unsigned kNumOpcodes = 0
#define OCCL_OPCODE(name, mnemonic) +1
#include "plan/model/opcode.def"
#undef OCCL_OPCODE
    ;

/// The spelling of an opcode in plan files and reports.
constexpr const char *mnemonic(Opcode opcode) {
  constexpr const char *names[] = {
#define OCCL_OPCODE(name, mnemonic) mnemonic,
#include "plan/model/opcode.def"
#undef OCCL_OPCODE
  };
  return names[static_cast<unsigned>(opcode)];
}

/// What an instruction of a given opcode has among its operands. All data instructions mean the
/// same thing: fold the sources from left to right, store the result in every destination.
///
///   opcode              sources                                    destinations
///   copy                1 local                                    1 local
///   reduce              2 or more local                            1 local
///   send                1 local                                    1 or more connections
///   recv                1 connection                               1 local
///   recvReduceCopy      2 or more, 1 or more of them connections   1 local
///   recvCopySend        1 connection                               at most 1 local, 1 or more
///                                                                  connections
///   recvReduceSend      2 or more, 1 or more of them connections   1 or more connections
///   recvReduceCopySend  2 or more, 1 or more of them connections   1 local and 1 or more
///                                                                  connections
///   loadReduceStore     1 or more local or of a peer               1 or more local or of a peer
///   signal              none                                       1 counter
///   wait                1 or more counters                         none
struct OpcodeShape {
  uint8_t minSources, maxSources; // 255: no bound but limits::kMaxOperands
  bool needsLocalSource;          // the sources are all local
  bool needsConnectionSource;     // at least one source is a connection
  uint8_t minLocalDestinations, maxLocalDestinations;
  bool sends; // at least one destination is a connection (none otherwise)
};

constexpr OpcodeShape shapeOf(Opcode opcode) {
  switch (opcode) {
  case Opcode::Copy:
    return {1, 1, true, false, 1, 1, false};
  case Opcode::Reduce:
    return {2, 255, true, false, 1, 1, false};
  case Opcode::Send:
    return {1, 1, true, false, 0, 0, true};
  case Opcode::Recv:
    return {1, 1, false, true, 1, 1, false};
  case Opcode::RecvReduceCopy:
    return {2, 255, false, true, 1, 1, false};
  case Opcode::RecvCopySend:
    return {1, 1, false, true, 0, 1, true};
  case Opcode::RecvReduceSend:
    return {2, 255, false, true, 0, 0, true};
  case Opcode::RecvReduceCopySend:
    return {2, 255, false, true, 1, 1, true};
  case Opcode::LoadReduceStore:
    return {1, 255, true, false, 1, 255, false};
  case Opcode::Signal:
    return {0, 0, true, false, 0, 0, true};
  case Opcode::Wait:
    return {1, 255, false, true, 0, 0, false};
  }
  return {};
}

} // namespace occl::plan
