#include "runtime/control/bootstrap/bootstrap.h"

#include <gtest/gtest.h>
#include <map>
#include <set>

namespace occl::bootstrap {
namespace {

using Variables = std::map<std::string, std::string>;

Variables *current = nullptr;

StatusOr<Identity> identify(Variables variables) {
  current = &variables;
  return identityFromEnvironment([](const char *variable) -> const char * {
    auto found = current->find(variable);
    return found == current->end() ? nullptr : found->second.c_str();
  });
}

void expectError(Variables variables, const std::string &part) {
  auto identity = identify(std::move(variables));
  ASSERT_FALSE(identity.ok());
  EXPECT_EQ(identity.status().code(), StatusCode::InvalidArgument);
  EXPECT_NE(identity.status().message().find(part), std::string::npos)
      << identity.status().message();
}

const Variables kTorchrun = {{"RANK", "2"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "localhost"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "a"}};
const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_NAMESPACE", "77"}};
const Variables kSrun = {{"SLURM_PROCID", "7"},
                         {"SLURM_NTASKS", "8"},
                         {"SLURM_JOB_ID", "123"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_NODES", "1"}};

Variables with(Variables variables, const std::string &name, const std::string &value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string &name) {
  variables.erase(name);
  return variables;
}

TEST(Environment, readsOwnVariables) {
  auto identity = identify({{"OCCL_RANK", "3"}, {"OCCL_SIZE", "8"}, {"OCCL_JOB", "job-1"}});
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_EQ(identity->rank, 3u);
  EXPECT_EQ(identity->numRanks, 8u);
  EXPECT_EQ(identity->name, "job-1");
}

TEST(Environment, ownVariablesComeBeforeALauncher) {
  Variables variables = kMpirun;
  variables.insert({{"OCCL_RANK", "0"}, {"OCCL_SIZE", "1"}, {"OCCL_JOB", "inner"}});
  auto identity = identify(variables);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->name, "inner");
}

TEST(Environment, readsTorchrun) {
  auto identity = identify(kTorchrun);
  ASSERT_TRUE(identity.ok()) << identity.status().message();
  EXPECT_EQ(identity->rank, 2u);
  EXPECT_EQ(identity->numRanks, 4u);
  EXPECT_EQ(identity->name.rfind("torchrun-", 0), 0u);
}

TEST(Environment, namesOfTorchrunJobsDifferByPortRunAndRestart) {
  std::string base = identify(kTorchrun)->name;
  EXPECT_EQ(identify(with(kTorchrun, "RANK", "0"))->name, base);
  EXPECT_NE(identify(with(kTorchrun, "MASTER_PORT", "29501"))->name, base);
  EXPECT_NE(identify(with(kTorchrun, "TORCHELASTIC_RUN_ID", "b"))->name, base);
  EXPECT_NE(identify(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "1"))->name, base);
}

TEST(Environment, readsMpirunAndSrun) {
  auto mpirun = identify(kMpirun);
  ASSERT_TRUE(mpirun.ok()) << mpirun.status().message();
  EXPECT_EQ(mpirun->rank, 1u);
  auto srun = identify(kSrun);
  ASSERT_TRUE(srun.ok()) << srun.status().message();
  EXPECT_EQ(srun->numRanks, 8u);
  EXPECT_NE(mpirun->name, srun->name);
}

uint64_t jobOf(Variables variables) {
  current = &variables;
  return jobFromEnvironment([](const char *variable) -> const char * {
    auto found = current->find(variable);
    return found == current->end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, jobsAreToldApart) {
  EXPECT_EQ(jobOf({}), 0u);
  EXPECT_EQ(jobOf({{"RANK", "1"}, {"WORLD_SIZE", "2"}}), 0u) << "nothing says which job";
  for (const Variables &launched : {kTorchrun, kMpirun, kSrun}) {
    EXPECT_NE(jobOf(launched), 0u);
    EXPECT_EQ(jobOf(with(launched, "OCCL_JOB", "a")), jobOf({{"OCCL_JOB", "a"}}));
  }
  EXPECT_EQ(jobOf(kTorchrun), jobOf(with(kTorchrun, "RANK", "0")));
  EXPECT_NE(jobOf(kTorchrun), jobOf(with(kTorchrun, "MASTER_PORT", "29501")));
  EXPECT_NE(jobOf(kMpirun), jobOf(with(kMpirun, "PMIX_NAMESPACE", "78")));
  EXPECT_NE(jobOf(kSrun), jobOf(with(kSrun, "SLURM_STEP_ID", "1")));
  EXPECT_NE(jobOf({{"OCCL_JOB", "a"}}), jobOf({{"OCCL_JOB", "b"}}));
}

/// After the failure of a rank the agent of its machine counts a restart, the others do not.
TEST(Environment, restartsOfOneMachineMakeNoOtherJobOfSeveral) {
  const Variables onTwo = with(kTorchrun, "LOCAL_WORLD_SIZE", "2");
  EXPECT_EQ(jobOf(with(onTwo, "TORCHELASTIC_RESTART_COUNT", "1")),
            jobOf(with(onTwo, "TORCHELASTIC_RESTART_COUNT", "0")));
  EXPECT_NE(jobOf(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "1")),
            jobOf(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "0")));
}

std::optional<uint32_t> restartsOf(Variables variables) {
  current = &variables;
  return restartsFromEnvironment([](const char *variable) -> const char * {
    auto found = current->find(variable);
    return found == current->end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, restartsAreReadIfTheLauncherCountsThem) {
  EXPECT_EQ(restartsOf(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "2")), 2u);
  EXPECT_EQ(restartsOf(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "some")), std::nullopt);
  EXPECT_EQ(restartsOf(with(kMpirun, "TORCHELASTIC_RESTART_COUNT", "2")), std::nullopt);
  EXPECT_EQ(restartsOf(kTorchrun), std::nullopt);
}

TEST(Environment, refusesSeveralMachinesThatHaveNoPlaceToMeet) {
  expectError(without(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"), "MASTER_ADDR"),
              "2 of 4 ranks (LOCAL_WORLD_SIZE)");
  expectError(with(kMpirun, "OMPI_COMM_WORLD_LOCAL_SIZE", "1"), "1 of 2 ranks");
  expectError(with(kSrun, "SLURM_STEP_NUM_NODES", "2"), "on 2 machines");
  expectError(with(with(kSrun, "SLURM_STEP_NUM_NODES", "2"), "SLURM_STEP_NODELIST", "a[1-"),
              "on 2 machines");
}

std::string nameOf(const Variables &variables) {
  auto identity = identify(variables);
  return identity.ok() ? identity->name : identity.status().message();
}

TEST(Environment, ranksOfSeveralMachinesMeetWhereTheMasterIs) {
  const Variables onTwo = with(kTorchrun, "LOCAL_WORLD_SIZE", "2");
  EXPECT_EQ(nameOf(with(onTwo, "MASTER_ADDR", "a.example")), "a.example:21308");
  EXPECT_EQ(nameOf(with(onTwo, "MASTER_ADDR", "fd77::1")), "[fd77::1]:21308");
  EXPECT_EQ(nameOf(with(onTwo, "MASTER_PORT", "65535")), "localhost:24575");
  EXPECT_EQ(nameOf(with(onTwo, "OCCL_COMM_ID", "b:7")), "b:7");
  // As programs for PyTorch are started by srun or mpirun.
  Variables srun = with(kSrun, "SLURM_STEP_NUM_NODES", "2");
  srun.insert({{"MASTER_ADDR", "b"}, {"MASTER_PORT", "9"}, {"SLURM_STEP_NODELIST", "c,b"}});
  EXPECT_EQ(nameOf(srun), "b:24585");
  Variables mpirun = with(kMpirun, "OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  mpirun.insert({{"MASTER_ADDR", "b"}, {"MASTER_PORT", "9"}});
  EXPECT_EQ(nameOf(mpirun), "b:24585");
}

/// Nor does either meet at the other's MASTER_PORT.
TEST(Environment, jobsOfNeighbouringMasterPortsMeetAtPortsOfTheirOwn) {
  const auto portBy = [](int masterPort) {
    const std::string name = nameOf(
        with(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"), "MASTER_PORT", std::to_string(masterPort)));
    return std::stoi(name.substr(name.find(':') + 1));
  };
  for (int masterPort = 1; masterPort < 65535; ++masterPort) {
    const int one = portBy(masterPort), next = portBy(masterPort + 1);
    ASSERT_TRUE(one >= 16384 && one < 32768) << one;
    ASSERT_EQ(std::set({masterPort, masterPort + 1, one, next}).size(), 4u) << masterPort;
  }
}

/// Open MPI starts its daemons on other machines by srun: their step is not that of all ranks.
TEST(Environment, ranksOfMpirunDoNotMeetWhereStepsOfSlurmAre) {
  Variables variables = with(kMpirun, "OMPI_COMM_WORLD_LOCAL_SIZE", "1");
  variables.insert(kSrun.begin(), kSrun.end());
  expectError(with(variables, "SLURM_STEP_NODELIST", "n8"), "1 of 2 ranks");
}

TEST(Environment, ranksOfSrunMeetOnTheFirstMachineOfTheirStep) {
  const auto of = [](const std::string &list) {
    return nameOf(with(with(kSrun, "SLURM_STEP_NUM_NODES", "2"), "SLURM_STEP_NODELIST", list));
  };
  const std::string name = of("n7,n8"), port = name.substr(name.find(':'));
  EXPECT_GE(std::stoi(port.substr(1)), 16384);
  EXPECT_LT(std::stoi(port.substr(1)), 32768);
  EXPECT_EQ(name, "n7" + port);
  EXPECT_EQ(of("n[007-012,20],other"), "n007" + port);
  EXPECT_EQ(of("n[9,11]-ib"), "n9-ib" + port);
  EXPECT_EQ(of("rack[1-2]n[3-4]"), "rack1n3" + port);
  Variables later = with(with(kSrun, "SLURM_STEP_NUM_NODES", "2"), "SLURM_STEP_NODELIST", "n7,n8");
  EXPECT_NE(nameOf(with(later, "SLURM_STEP_ID", "1")), name);
}

TEST(Environment, saysWhatIsMissing) {
  expectError({}, "occl-run");
  expectError({{"OCCL_RANK", "0"}}, "OCCL_SIZE is not set");
  expectError({{"OCCL_RANK", "0"}, {"OCCL_SIZE", "1"}}, "OCCL_JOB is not set");
  expectError(without(kTorchrun, "MASTER_PORT"), "MASTER_PORT is not set");
  expectError(without(kMpirun, "PMIX_NAMESPACE"), "PMIX_NAMESPACE is not set");
}

TEST(Environment, saysWhatIsWrong) {
  Variables own = {{"OCCL_RANK", "0"}, {"OCCL_SIZE", "2"}, {"OCCL_JOB", "j"}};
  expectError(with(own, "OCCL_RANK", "2"), "OCCL_RANK is 2, expected less than OCCL_SIZE");
  expectError(with(own, "OCCL_RANK", "-1"), "'-1', expected a number");
  expectError(with(own, "OCCL_RANK", ""), "'', expected a number");
  expectError(with(own, "OCCL_RANK", "1x"), "'1x', expected a number");
  expectError(with(own, "OCCL_SIZE", "99999999999"), "expected a number");
  expectError(with(own, "OCCL_SIZE", "0"), "expected 1 to");
  expectError(with(own, "OCCL_SIZE", "4000000"), "expected 1 to");
  expectError(with(own, "OCCL_JOB", "a/b"), "'a/b', expected 1 to 64 of");
  expectError(with(own, "OCCL_JOB", std::string(65, 'a')), "expected 1 to 64 of");
}

} // namespace
} // namespace occl::bootstrap
