// The ranges of this process as a tool of NVTX sees them: that of injection.cpp.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace occl::nvtx_test {

/// To be made before the process has a communicator, as NVTX looks for a tool once.
class Tool {
public:
  Tool() {
    setenv("NVTX_INJECTION64_PATH", kPath, 1);
    library = dlopen(kPath, RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
  }
  /// Since the last time, sorted: "domain | category | name | payload".
  std::vector<std::string> take() const {
    using Each = void (*)(void *, const char *);
    std::vector<std::string> ranges;
    reinterpret_cast<void (*)(Each, void *)>(dlsym(library, "occlTestTakeRanges"))(
        [](void *with, const char *range) {
          static_cast<std::vector<std::string> *>(with)->push_back(range);
        },
        &ranges);
    std::ranges::sort(ranges);
    return ranges;
  }
  /// Of the calling thread.
  int open() const { return reinterpret_cast<int (*)()>(dlsym(library, "occlTestOpenRanges"))(); }

private:
  static constexpr const char *kPath = "test/nvtx/injection.so";
  void *library = nullptr;
};

} // namespace occl::nvtx_test
