// Which other NCCL is found.
#include "nccl/fallback/library.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>

using occl::communicator::testing::Processes;

namespace {

const std::string kOther = "nccl/testing/other_nccl.so";

/// Where there may be devices: what the other library is found to be, or why there is none.
std::string found() {
  unsetenv("OCCL_NCCL_HOST");
  const occl::nccl::OtherNccl *other = nullptr;
  const occl::nccl::Outcome outcome = occl::nccl::openOther(other);
  return outcome.ok() ? other->title() : outcome.text;
}

/// A new folder of the test's with that file in it.
std::filesystem::path place(const std::filesystem::path &file, const std::filesystem::path &at) {
  const std::filesystem::path to = std::filesystem::path(::testing::TempDir()) / at;
  std::filesystem::create_directories(to.parent_path());
  std::filesystem::copy_file(file, to, std::filesystem::copy_options::overwrite_existing);
  return to;
}

} // namespace

TEST(Search, FindsWhatIsBesideLoadedPackagesOfPython) {
  const auto loaded =
      place("nccl/testing/other_nccl_small.so", "v/site-packages/torch/lib/libt.so");
  const auto right = place(kOther, "v/site-packages/nvidia/nccl/lib/libnccl.so.2");
  Processes processes(1, [&](uint32_t) -> std::string {
    if (!dlopen(loaded.c_str(), RTLD_NOW))
      return dlerror();
    const std::string title = found();
    return title == right.string() + " (2.27.3)" ? "" : title;
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Search, TakesNoCopyOfItsOwn) {
  const auto own = place("nccl/libnccl.so.2", "own/libnccl.so.2");
  const auto right = place(kOther, "others/libnccl.so.2");
  Processes processes(1, [&](uint32_t) -> std::string {
    const std::string path =
        ":" + own.parent_path().string() + ":/no/such/folder:" + right.parent_path().string();
    setenv("LD_LIBRARY_PATH", path.c_str(), 1);
    const std::string title = found();
    return title == right.string() + " (2.27.3)" ? "" : title;
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Search, OfNothingSaysHowToNameOne) {
  Processes processes(1, [&](uint32_t) -> std::string {
    unsetenv("LD_LIBRARY_PATH");
    const std::string text = found();
    // A machine may have one in its folders.
    return text.find("OCCL_NCCL_FALLBACK_LIBRARY names one") != std::string::npos ||
                   text.starts_with("/usr/")
               ? ""
               : text;
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}
