#include "tools/occl/device_checks.h"

#include "runtime/cuda/device_rank.h"

#include <fmt/format.h>

#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <type_traits>
#include <vector>

namespace occl::driver {

namespace {

/// The functions of CUDA's driver that are asked; 0 is success for all of them.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*version)(int *) = nullptr;
  int (*count)(int *) = nullptr;
  int (*device)(int *, int) = nullptr;
  int (*name)(char *, int, int) = nullptr;
  int (*memory)(size_t *, int) = nullptr;
  int (*attribute)(int *, int, int) = nullptr;
  int (*peer)(int *, int, int) = nullptr;

  bool load() {
    // By name at run time, as everywhere: on most machines without a GPU the driver is not there.
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    bool isThere = library != nullptr;
    const auto get = [&](const char *symbol, auto &function) {
      if (isThere)
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
      isThere = isThere && function;
    };
    get("cuInit", init);
    get("cuDriverGetVersion", version);
    get("cuDeviceGetCount", count);
    get("cuDeviceGet", device);
    get("cuDeviceGetName", name);
    get("cuDeviceTotalMem_v2", memory);
    get("cuDeviceGetAttribute", attribute);
    get("cuDeviceCanAccessPeer", peer);
    return isThere;
  }
};

// Of CUdevice_attribute, which is fixed.
constexpr int kComputeMode = 20, kMajor = 75, kMinor = 76;
constexpr int kProhibited = 2; // of CUcomputemode

int ask(const Driver &driver, int attribute, int device) {
  int value = 0;
  driver.attribute(&value, attribute, device);
  return value;
}

void checkDevice(Report &report, const Driver &driver, int device) {
  // What makes a GPU unusable first, then what is only unsure.
  char name[100] = "?";
  size_t bytes = 0;
  driver.name(name, sizeof name, device);
  driver.memory(&bytes, device);
  const int major = ask(driver, kMajor, device), minor = ask(driver, kMinor, device);
  const std::string what = fmt::format("GPU {}", device);
  const std::string state =
      fmt::format("{}, {} GiB, compute capability {}.{}", name, bytes >> 30, major, minor);
  const auto capability = static_cast<uint32_t>(10 * major + minor);
  // Code for its architecture, or code that the driver can translate to it.
  if (const std::string why = cuda::whyNoCode(cuda::deviceCode(), capability); !why.empty())
    report.add(Finding::Broken, what, state, "it has " + why);
  else if (ask(driver, kComputeMode, device) == kProhibited)
    // The administrator's setting: no process may use it.
    report.add(Finding::Broken, what, state + ", prohibited", "nvidia-smi -c 0");
  else if (!cuda::isTried(capability))
    report.add(Finding::Limited, what, state, "OCCL has code for it that nobody has tried");
  else
    report.add(Finding::Good, what, state);
}

void checkPeers(Report &report, const Driver &driver, int number) {
  std::string missing;
  for (int i = 0; i < number; ++i)
    // Each direction is asked for by itself, though they hardly differ.
    for (int j = 0; j < number; ++j) {
      int can = 0;
      if (i != j && (driver.peer(&can, i, j) != 0 || can == 0))
        missing += fmt::format(" {}-{}", i, j);
    }
  if (missing.empty())
    report.add(Finding::Good, "GPUs of each other", "all access all");
  else
    report.add(Finding::Limited, "GPUs of each other", "without access:" + missing,
               "between ranks on such GPUs data goes through host memory");
}

/// See docs/gpu.md, what waits for what.
void checkSettings(Report &report) {
  const char *given = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  // CUDA's own default.
  const int connections = given ? std::atoi(given) : 8;
  const std::string state = fmt::format("{}{}", connections, given ? "" : ", as nobody has set it");
  if (connections < 8)
    report.add(Finding::Limited, "MAX_CONNECTIONS", state,
               "as many streams that wait hold up all others: CUDA_DEVICE_MAX_CONNECTIONS=32");
  else
    report.add(Finding::Good, "MAX_CONNECTIONS", state);
  if (const char *blocking = std::getenv("CUDA_LAUNCH_BLOCKING"); blocking && *blocking == '1')
    report.add(Finding::Limited, "CUDA_LAUNCH_BLOCKING", "1",
               "ranks of one process wait for each other's kernels: unset it");
}

} // namespace

void checkDevices(Report &report) {
  // Which code was compiled in, whatever GPUs there are.
  const cuda::DeviceCode code = cuda::deviceCode();
  if (code.machine.empty())
    report.add(Finding::Limited, "code for GPUs", cuda::describe(code),
               "built without CUDA: communicators are on hosts");
  else
    report.add(Finding::Good, "code for GPUs", cuda::describe(code));
  // From here on each step needs the one before; the first that fails says that hosts are used.
  Driver driver;
  if (!driver.load())
    return report.add(Finding::Limited, "CUDA", "libcuda.so.1 is not found",
                      "communicators are on hosts");
  int number = 0, version = 0;
  driver.version(&version);
  if (const int error = driver.init(0); error != 0 || driver.count(&number) != 0 || number == 0)
    return report.add(Finding::Limited, "CUDA",
                      fmt::format("driver of CUDA {}.{}, no GPU (error {})", version / 1000,
                                  version % 1000 / 10, error),
                      "communicators are on hosts");
  report.add(Finding::Good, "CUDA",
             fmt::format("driver of CUDA {}.{}", version / 1000, version % 1000 / 10));
  for (int i = 0; i < number; ++i) {
    int device = 0;
    if (driver.device(&device, i) == 0)
      checkDevice(report, driver, device);
  }
  // Only between several there is something to access.
  if (number > 1)
    checkPeers(report, driver, number);
  checkSettings(report);
}

} // namespace occl::driver
