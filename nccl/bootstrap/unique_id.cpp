#include "nccl/bootstrap/unique_id.h"

#include "nccl/abi/exports.h"
#include "nccl/base/environment.h"
#include "nccl/bootstrap/root.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sys/random.h>

namespace occl::nccl {

namespace {

constexpr char kMagic[4] = {'O', 'C', 'C', 'L'};
constexpr uint32_t kLayout = 2;

template <size_t numBytes> bool draw(std::array<uint8_t, numBytes> &bytes) {
  return getrandom(bytes.data(), numBytes, 0) == static_cast<ssize_t>(numBytes);
}

} // namespace

Outcome makeUniqueId(ncclUniqueId &id) {
  IdLayout layout{};
  // A ncclUniqueId is 128 bytes that the program carries to all ranks without looking at them. The
  // magic number and the layout tell the rank of another library or version what went wrong.
  std::memcpy(layout.magic, kMagic, sizeof(kMagic));
  layout.layout = kLayout;
  layout.machine = machineId();
  const std::string given = setting("NCCL_COMM_ID").value_or("");
  if (!given.empty()) { // each rank makes it, so it names no process
    // All ranks call it in the same order, so the number of the call is the same on each.
    static std::atomic<uint64_t> calls = 0;
    layout.name = hashOf(given + "#" + std::to_string(calls++));
  } else {
    // Name and key are random: the name finds the meeting, the key proves that a rank was given the
    // id.
    if (!draw(layout.name) || !draw(layout.key))
      return {ncclSystemError, "the system gives no random bytes"};
    serveAsRoot(layout);
  }
  std::memcpy(&id, &layout, sizeof(id));
  return {};
}

Lineage Lineage::child(const std::string &how) const {
  // Children (of split, shrink, grow) get an id without a message: each rank computes it from the
  // parent's secret and what the call says, which is the same on all.
  const auto hash = [&](const char *of) {
    return hashOf(of + std::string(name.begin(), name.end()) + std::string(key.begin(), key.end()) +
                  how);
  };
  Lineage made;
  made.name = hash("name");
  const MachineId drawn = hash("key");
  std::copy_n(drawn.begin(), made.key.size(), made.key.begin());
  return made;
}

IdLayout Lineage::id() const {
  IdLayout layout{};
  std::memcpy(layout.magic, kMagic, sizeof(kMagic));
  layout.layout = kLayout;
  layout.machine = machineId();
  layout.name = name;
  layout.key = key;
  // The root's name is derived like the rest, so the ranks need not be told of it.
  layout.rootName = child("root").key;
  return layout;
}

Outcome serveId(IdLayout &id) {
  return serveAsRoot(id) ? Outcome()
                         : Outcome{ncclSystemError, "this process cannot listen for new ranks: no "
                                                    "socket, or no thread"};
}

Outcome readUniqueId(const ncclUniqueId &id, IdLayout &layout) {
  std::memcpy(&layout, &id, sizeof(id));
  if (std::memcmp(layout.magic, kMagic, sizeof(kMagic)) != 0)
    return invalidArgument("the id is not one of OCCL's ncclGetUniqueId: all ranks must load this "
                           "library, not NVIDIA's");
  if (layout.layout != kLayout)
    return invalidArgument("the id is of another version of OCCL");
  return {};
}

std::string nameOf(const IdLayout &id) {
  std::string name = "nccl-";
  for (uint8_t byte : id.name)
    for (int digit : {byte >> 4, byte & 15})
      name += "0123456789abcdef"[digit];
  return name;
}

} // namespace occl::nccl

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  using namespace occl::nccl;
  return guarded("ncclGetUniqueId", [&] {
    return id ? makeUniqueId(*id) : invalidArgument("uniqueId must not be NULL");
  });
}
OCCL_NCCL_SECOND_NAME(ncclGetUniqueId);

ncclResult_t ncclGetVersion(int *version) {
  using namespace occl::nccl;
  return guarded("ncclGetVersion", [&]() -> Outcome {
    if (!version)
      return invalidArgument("version must not be NULL");
    // Some programs refuse, or work around, versions that they do not know: then they are told
    // another.
    const std::string given = setting("OCCL_NCCL_VERSION").value_or("");
    const int number = std::atoi(given.c_str());
    *version = number > 0 ? number : NCCL_VERSION_CODE;
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclGetVersion);
