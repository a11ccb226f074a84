#include "tools/occl-topo/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace occl::topo {

namespace {

// What NVML declares, as far as it is used: stable since driver 410.
using Device = void *;
struct PciInfo {
  char legacyBus[16];
  unsigned domain, bus, device, deviceId, subsystemId;
  char busId[32];
};
constexpr unsigned kMostLinks = 18;
constexpr int kRemoteSwitch = 2;

class Nvml {
public:
  Nvml() : library(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    // One after the other, and none after the first that is missing: then NVML is too old.
    isWhole = library && find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
              find(count, "nvmlDeviceGetCount_v2") &&
              find(handle, "nvmlDeviceGetHandleByIndex_v2") && find(name, "nvmlDeviceGetName") &&
              find(pci, "nvmlDeviceGetPciInfo_v3") &&
              find(generation, "nvmlDeviceGetMaxPcieLinkGeneration") &&
              find(width, "nvmlDeviceGetMaxPcieLinkWidth") &&
              find(linkState, "nvmlDeviceGetNvLinkState") &&
              find(linkVersion, "nvmlDeviceGetNvLinkVersion") &&
              find(linkRemote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
    find(linkRemoteType, "nvmlDeviceGetNvLinkRemoteDeviceType"); // from driver 470 on
  }
  ~Nvml() {
    if (library)
      dlclose(library);
  }
  Nvml(const Nvml &) = delete;
  Nvml &operator=(const Nvml &) = delete;

  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned *) = nullptr;
  int (*handle)(unsigned, Device *) = nullptr;
  int (*name)(Device, char *, unsigned) = nullptr;
  int (*pci)(Device, PciInfo *) = nullptr;
  int (*generation)(Device, unsigned *) = nullptr;
  int (*width)(Device, unsigned *) = nullptr;
  int (*linkState)(Device, unsigned, unsigned *) = nullptr;
  int (*linkVersion)(Device, unsigned, unsigned *) = nullptr;
  int (*linkRemote)(Device, unsigned, PciInfo *) = nullptr;
  int (*linkRemoteType)(Device, unsigned, int *) = nullptr;

  bool isThere() const { return library; }
  bool isComplete() const { return isWhole; }

private:
  template <class Function> bool find(Function &function, const char *symbol) {
    function = reinterpret_cast<Function>(dlsym(library, symbol));
    return function;
  }

  void *const library;
  bool isWhole = false;
};

std::string busOf(const PciInfo &info) {
  std::string bus(info.busId, strnlen(info.busId, sizeof info.busId));
  std::ranges::transform(bus, bus.begin(), [](unsigned char c) { return std::toupper(c); });
  return bus;
}

/// Nominal, of one link in one direction.
uint64_t megabytesOfLink(unsigned version) {
  switch (version) {
  case 1:
    return 20'000;
  case 5:
    return 50'000;
  default: // 2 to 4; a later one is at least as fast
    return version > 5 ? 50'000 : 25'000;
  }
}

uint64_t megabytesOfPcie(unsigned generation, unsigned width) {
  constexpr uint64_t kOfLane[] = {0, 250, 500, 985, 1969, 3938, 7563};
  return kOfLane[std::min(generation, 6u)] * width;
}

void findLinks(const Nvml &nvml, Device device, Gpu &gpu, const std::vector<Gpu> &all) {
  for (unsigned link = 0; link < kMostLinks; ++link) {
    // A link that is not active, or not there, answers with an error.
    unsigned isActive = 0, version = 0;
    PciInfo remote = {};
    if (nvml.linkState(device, link, &isActive) != 0 || !isActive ||
        nvml.linkVersion(device, link, &version) != 0 ||
        nvml.linkRemote(device, link, &remote) != 0)
      continue;
    // The other end is another GPU of this machine, known by its place on the PCI bus, or a switch.
    // Several links to the same GPU add up.
    const auto peer = std::ranges::find(all, busOf(remote), &Gpu::bus);
    int type = 0;
    if (peer != all.end())
      gpu.toGpus[static_cast<size_t>(peer - all.begin())] += megabytesOfLink(version);
    else if (nvml.linkRemoteType && nvml.linkRemoteType(device, link, &type) == 0 &&
             type == kRemoteSwitch)
      gpu.toSwitches += megabytesOfLink(version);
  }
}

std::string findAll(const Nvml &nvml, Machine &machine) {
  unsigned number = 0;
  if (nvml.count(&number) != 0)
    return "NVML does not say how many GPUs there are";
  // All GPUs first, as links name each other by place.
  std::vector<Device> devices(number);
  for (unsigned i = 0; i < number; ++i) {
    char name[96] = "";
    PciInfo place = {};
    unsigned generation = 0, width = 0;
    if (nvml.handle(i, &devices[i]) != 0 || nvml.name(devices[i], name, sizeof name) != 0 ||
        nvml.pci(devices[i], &place) != 0)
      return "NVML does not say what GPU " + std::to_string(i) + " is";
    Gpu gpu{.name = name, .bus = busOf(place), .toGpus = std::vector<uint64_t>(number)};
    if (nvml.generation(devices[i], &generation) == 0 && nvml.width(devices[i], &width) == 0)
      gpu.pcieMegabytes = megabytesOfPcie(generation, width);
    machine.gpus.push_back(std::move(gpu));
  }
  // Then the links, when every place is known.
  for (unsigned i = 0; i < number; ++i)
    findLinks(nvml, devices[i], machine.gpus[i], machine.gpus);
  return "";
}

} // namespace

std::string findGpus(Machine &machine) {
  const Nvml nvml;
  if (!nvml.isThere())
    return "";
  if (!nvml.isComplete())
    return "libnvidia-ml.so.1 lacks functions that drivers have since 410";
  if (const int status = nvml.init(); status != 0)
    return "NVML does not start (status " + std::to_string(status) +
           "); `nvidia-smi` may say why, --host leaves GPUs out";
  const std::string wrong = findAll(nvml, machine);
  nvml.shutdown();
  return wrong;
}

} // namespace occl::topo
