// Names that one process makes for ranks of several machines.
#include "runtime/api/occl_rendezvous.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "test/machines/islands.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>

namespace occl::communicator::testing {
namespace {

std::string hostIdWith(const char *given) {
  given ? setenv("OCCL_HOSTID", given, 1) : unsetenv("OCCL_HOSTID");
  char text[512] = "";
  EXPECT_EQ(occlHostId(text, sizeof text, nullptr), occlSuccess);
  unsetenv("OCCL_HOSTID");
  return text;
}

TEST(Rendezvous, HostIdIsThatOfTheEnvironmentOrOfTheMachine) {
  EXPECT_EQ(hostIdWith("one"), hostIdWith("one"));
  const std::set<std::string> ids = {hostIdWith("one"), hostIdWith("two"), hostIdWith(nullptr)};
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids.count(""), 0u);
}

TEST(Rendezvous, HostIdIsCutToItsPlace) {
  const std::string whole = hostIdWith(nullptr);
  char text[8] = "";
  size_t length = 0;
  EXPECT_EQ(occlHostId(text, sizeof text, &length), occlSuccess);
  EXPECT_EQ(length, whole.size());
  EXPECT_EQ(text, whole.substr(0, sizeof text - 1));
  EXPECT_EQ(occlHostId(nullptr, 0, &length), occlSuccess);
  EXPECT_EQ(occlHostId(nullptr, 1, &length), occlInvalidArgument);
}

/// Of two machines, with what torchrun sets and a secret.
TEST(Rendezvous, RanksMeetBesideThePortOfTorchrun) {
  const uint16_t masterPort = freePort();
  Processes ranks(2, [&](uint32_t rank) -> std::string {
    const std::pair<const char *, std::string> variables[] = {
        {"RANK", std::to_string(rank)},
        {"WORLD_SIZE", "2"},
        {"LOCAL_WORLD_SIZE", "1"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", std::to_string(masterPort)},
        {"OCCL_SECRET", "a secret of this test"},
        {"OCCL_HOSTID", std::to_string(rank)}};
    for (const auto &[name, value] : variables)
      setenv(name, value.c_str(), 1);
    occlComm_t comm = nullptr;
    if (occlCommInitFromEnv(&comm, nullptr) != occlSuccess)
      return lastError("occlCommInitFromEnv");
    std::string wrong = runCollectives(comm, 1000);
    occlCommDestroy(comm);
    return wrong;
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(ranks.join(r), 0) << ranks.wrong(r);
}

TEST(Rendezvous, RanksOfSeveralIslandsJoinByTheName) {
  occlRendezvous_t held[2] = {};
  const char *names[2] = {};
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(occlRendezvousOpen(nullptr, &held[i], &names[i]), occlSuccess) << occlGetLastError();
  EXPECT_STRNE(names[0], names[1]);
  Processes ranks(3, [&](uint32_t rank) -> std::string {
    for (const char *name : names) { // as a process group has several
      occlComm_t comm = nullptr;
      if (std::string wrong = joinOn(rank == 2, comm, 3, rank, name); !wrong.empty())
        return wrong;
      if (std::string wrong = runCollectives(comm, 1000); !wrong.empty())
        return wrong;
      occlCommDestroy(comm);
    }
    return "";
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(ranks.join(r), 0) << ranks.wrong(r);
  for (occlRendezvous_t each : held)
    EXPECT_EQ(occlRendezvousClose(each), occlSuccess);
  EXPECT_EQ(occlRendezvousClose(nullptr), occlSuccess);
}

TEST(Rendezvous, TheInterfaceCanBeChosen) {
  occlRendezvous_t held = nullptr;
  const char *name = nullptr;
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  ASSERT_EQ(occlRendezvousOpen("no-such-host.invalid", &held, &name), occlSuccess);
  EXPECT_TRUE(std::string(name).starts_with("127.0.0.1:")) << name;
  occlRendezvousClose(held);
  setenv("NCCL_SOCKET_IFNAME", "=none", 1);
  EXPECT_EQ(occlRendezvousOpen(nullptr, &held, &name), occlSystemError);
  EXPECT_NE(std::string(occlGetLastError()).find("NCCL_SOCKET_IFNAME"), std::string::npos);
  unsetenv("NCCL_SOCKET_IFNAME");
  EXPECT_EQ(occlRendezvousOpen(nullptr, nullptr, &name), occlInvalidArgument);
}

} // namespace
} // namespace occl::communicator::testing
