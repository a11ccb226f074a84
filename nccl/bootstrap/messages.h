// What ranks and the root of an id say to each other, in messages of one size over a stream.
#pragma once

#include "nccl/bootstrap/unique_id.h"

#include <cstring>

namespace occl::nccl {

/// A text that is cut to its place.
template <size_t size> struct Text {
  char bytes[size];

  Text &operator=(const std::string &text) {
    std::memset(bytes, 0, size);
    std::memcpy(bytes, text.data(), std::min(text.size(), size - 1));
    return *this;
  }
  std::string str() const { return std::string(bytes, strnlen(bytes, size)); }
};

enum class FromRankKind : uint32_t {
  Hello,     // a rank is there
  Prepared,  // it has opened the other library, or failed to: `outcome`; rank 0 has made `id`
  Done,      // its communicator of the other library is there, or could not be made
  Listening, // rank 0: `text` is the address, HOST:PORT, where it will listen, or `result`
};

struct FromRank {
  uint32_t magic;
  FromRankKind kind;
  std::array<uint8_t, 16> name;
  std::array<uint8_t, 8> key;
  MachineId machine;
  int32_t process;
  uint32_t numRanks, rank;
  int32_t version; // of the other library
  int32_t result;  // ncclSuccess, or what has failed, for the reason `text`
  Text<64> host;
  Text<96> wish; // why OCCL does not do; "" if it does as far as the rank can tell
  Text<256> text;
  ncclUniqueId id;
};

enum class FromRootKind : uint32_t {
  Local,   // all ranks are on the root's machine: OCCL joins them
  Prepare, // the communicator goes to the other library: open it
  Init,    // make it, of `id`
  Ready,   // all ranks have done so
  Listen,  // to rank 0: OCCL joins the ranks, which are on several machines; find a port for that
  Across,  // OCCL joins them, at the address `text`
  Failed,  // `result` and `text` say why; nothing more comes
};

struct FromRoot {
  uint32_t magic;
  FromRootKind kind;
  int32_t result;
  Text<96> why; // of Prepare: why the communicator goes there
  Text<512> text;
  ncclUniqueId id;
};

inline constexpr uint32_t kMessageMagic = 0x4f434332;

} // namespace occl::nccl
