#include "nccl/unique_id.h"

#include "nccl/abi/exports.h"
#include "nccl/environment.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/random.h>

namespace occl::nccl {

namespace {

constexpr char kMagic[4] = {'O', 'C', 'C', 'L'};
constexpr uint32_t kLayout = 1;

struct Layout {
  char magic[4];
  uint32_t layout;
  std::array<uint8_t, 16> bootId;
  std::array<uint8_t, 16> name;
  char rest[88];
};
static_assert(sizeof(Layout) == NCCL_UNIQUE_ID_BYTES);

/// The kernel's, as 16 bytes; 0 where /proc is not there, which is the same for all ranks there.
std::array<uint8_t, 16> bootId() {
  std::array<uint8_t, 16> id{};
  std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r");
  if (!file)
    return id;
  size_t digits = 0;
  for (int c; digits < 32 && (c = std::fgetc(file)) != EOF;) {
    const char *hex = "0123456789abcdef";
    if (const char *at = c ? std::strchr(hex, c) : nullptr) {
      id[digits / 2] = static_cast<uint8_t>(id[digits / 2] << 4 | (at - hex));
      ++digits;
    }
  }
  std::fclose(file);
  return id;
}

/// FNV-1a, from two starting points: every rank computes the same.
std::array<uint8_t, 16> hashOf(const std::string &text) {
  std::array<uint8_t, 16> bytes{};
  for (uint64_t half = 0; half < 2; ++half) {
    uint64_t hash = 14695981039346656037u + half;
    for (unsigned char c : text)
      hash = (hash ^ c) * 1099511628211u;
    std::memcpy(bytes.data() + half * 8, &hash, 8);
  }
  return bytes;
}

} // namespace

Outcome makeUniqueId(ncclUniqueId &id) {
  Layout layout{};
  std::memcpy(layout.magic, kMagic, sizeof(kMagic));
  layout.layout = kLayout;
  layout.bootId = bootId();
  if (auto given = setting("NCCL_COMM_ID")) {
    static std::atomic<uint64_t> calls = 0;
    layout.name = hashOf(*given + "#" + std::to_string(calls++));
  } else if (getrandom(layout.name.data(), layout.name.size(), 0) !=
             static_cast<ssize_t>(layout.name.size())) {
    return {ncclSystemError, "the system gives no random bytes"};
  }
  std::memcpy(&id, &layout, sizeof(id));
  return {};
}

Outcome nameOf(const ncclUniqueId &id, std::string &name) {
  Layout layout;
  std::memcpy(&layout, &id, sizeof(id));
  if (std::memcmp(layout.magic, kMagic, sizeof(kMagic)) != 0)
    return invalidArgument("the id is not one of OCCL's ncclGetUniqueId: all ranks must load this "
                           "library, not NVIDIA's");
  if (layout.layout != kLayout)
    return invalidArgument("the id is of another version of OCCL");
  if (layout.bootId != bootId())
    return invalidUsage("the id was made on another machine: OCCL joins ranks of one machine");
  name = "nccl-";
  for (uint8_t byte : layout.name)
    for (int digit : {byte >> 4, byte & 15})
      name += "0123456789abcdef"[digit];
  return {};
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
    const std::string given = setting("OCCL_NCCL_VERSION").value_or("");
    const int number = std::atoi(given.c_str());
    *version = number > 0 ? number : NCCL_VERSION_CODE;
    return {};
  });
}
OCCL_NCCL_SECOND_NAME(ncclGetVersion);
