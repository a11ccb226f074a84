// nccl_abi.h against nccl.h.
#include "nccl/nccl_abi.h"

#include <gtest/gtest.h>

#define FACTS factsOfOurs
#include "nccl/abi/abi_facts.inc"

std::map<std::string, std::string> factsOfTheirs();
std::map<std::string, std::string> initializersOfTheirs();

TEST(Abi, IsThatOfTheHeader) {
  const auto theirs = factsOfTheirs(), ours = factsOfOurs();
  ASSERT_GT(ours.size(), 100u);
  if (theirs.empty())
    GTEST_SKIP() << "SKIPPED: there is no nccl.h, or no CUDA, to compare with";
  if (theirs.at("NCCL_VERSION_CODE").substr(0, 3) != "228")
    GTEST_SKIP() << "SKIPPED: nccl.h is of version " << theirs.at("NCCL_VERSION_CODE")
                 << ", nccl_abi.h of 2.28";
  for (const auto &[name, fact] : theirs)
    EXPECT_EQ(ours.at(name), fact) << name;
  const std::string initial(reinterpret_cast<const char *>(&kNcclConfigInitializer),
                            sizeof(ncclConfig_t));
  EXPECT_EQ(initializersOfTheirs().at("config"), initial);
}
