// NVML of a machine that the environment describes, for topo_test.py. FAKE_GPUS: "switch 4" (GPUs
// with 18 links of version 4 to a switch), "ring 4" (two of version 3 to each neighbour), "pcie 2",
// "broken".
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string kind() { return std::string(std::getenv("FAKE_GPUS")).substr(0, 4); }
unsigned number() {
  return static_cast<unsigned>(std::atoi(std::strrchr(std::getenv("FAKE_GPUS"), ' ')));
}
unsigned indexOf(void *device) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device) - 1);
}
constexpr int kInvalid = 2, kNotSupported = 3;

struct Pci {
  char legacy[16];
  unsigned numbers[5];
  char busId[32];
};
void write(Pci *pci, const char *domain, unsigned device) {
  std::snprintf(pci->busId, sizeof pci->busId, "%s:%02x:00.0", domain, device);
}

/// In a ring links 0 and 1 lead to the next GPU, 2 and 3 to the one before.
bool isThere(unsigned link) { return kind() == "swit" ? link < 18 : kind() == "ring" && link < 4; }

} // namespace

extern "C" {
int nvmlInit_v2() { return std::strcmp(std::getenv("FAKE_GPUS"), "broken") == 0 ? 9 : 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { return *count = number(), 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = reinterpret_cast<void *>(uintptr_t{index} + 1);
  return 0;
}
int nvmlDeviceGetName(void *, char *name, unsigned length) {
  return std::snprintf(name, length, "A GPU"), 0;
}
int nvmlDeviceGetPciInfo_v3(void *device, Pci *pci) {
  return write(pci, "00000000", 0xa0 + indexOf(device)), 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void *, unsigned *generation) { return *generation = 4, 0; }
int nvmlDeviceGetMaxPcieLinkWidth(void *, unsigned *width) { return *width = 16, 0; }
int nvmlDeviceGetNvLinkState(void *, unsigned link, unsigned *isActive) {
  *isActive = isThere(link);
  return isThere(link) ? 0 : kNotSupported;
}
int nvmlDeviceGetNvLinkVersion(void *, unsigned, unsigned *version) {
  return *version = kind() == "swit" ? 4 : 3, 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, Pci *pci) {
  if (!isThere(link))
    return kInvalid;
  if (kind() == "swit")
    return write(pci, "00000001", link / 6), 0;
  const unsigned step = link < 2 ? 1 : number() - 1;
  // In capitals, as some drivers write it.
  write(pci, "00000000", 0xa0 + (indexOf(device) + step) % number());
  for (char *c = pci->busId; *c; ++c)
    if (*c == 'a')
      *c = 'A';
  return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void *, unsigned, int *type) {
  return *type = kind() == "swit" ? 2 : 0, 0;
}
}
