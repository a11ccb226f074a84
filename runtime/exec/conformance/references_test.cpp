// Slots that refer to the sender's buffers, mapped or to be read from another process: every
// program gives the reference's bytes, nothing is read after its sender has finished, and memory
// that is gone is an error.
#include "plan/model/builder.h"
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/exec/conformance/conformance.h"
#include "runtime/exec/conformance/programs.h"
#include "runtime/exec/host/step_driver.h"
#include "runtime/exec/host/target_host.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace occl::interpreter::conformance {
namespace {

using namespace std::chrono_literals;

class References : public testing::TestWithParam<NamedProgram> {};

TEST_P(References, GiveTheReference) {
  for (uint32_t ranks : {1u, 2u, 5u})
    for (uint64_t count : {0, 1, 64, 5003})
      for (bool mapped : {true, false})
        for (bool inPlace : {false, true})
          for (uint32_t slices : {1u, 2u}) {
            plan::Plan plan = GetParam().make(ranks);
            if (inPlace && (!plan.inPlace || plan.collective == "shift"))
              continue;
            SimulationOptions options = {.count = count,
                                         .type = DataType::Int32,
                                         .op = ReduceOp::Avg,
                                         .inPlace = inPlace,
                                         .tiles = {1000, slices},
                                         .misalignment = 4,
                                         .referenceBytes = 1,
                                         .mapped = mapped,
                                         .hostSteps = true};
            Status status = checkCollective(plan, options, count, [&](Simulation &simulation) {
              return runRandomly(simulation, count + slices, 2);
            });
            ASSERT_TRUE(status.ok())
                << status.message() << "\n  " << ranks << " ranks, " << count << " elements"
                << (mapped ? ", mapped" : "") << (inPlace ? ", in place" : "");
          }
}

TEST_P(References, ThreadsGiveTheReference) {
  for (bool mapped : {true, false}) {
    plan::Plan plan = GetParam().make(4);
    SimulationOptions options = {.count = 20011,
                                 .type = DataType::Int32,
                                 .tiles = {2000, 1},
                                 .referenceBytes = 1,
                                 .mapped = mapped,
                                 .hostSteps = true};
    Status status = checkCollective(
        plan, options, 3, [](Simulation &simulation) { return runInThreads(simulation, 60s); });
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, References,
                         testing::ValuesIn(programs().begin(), programs().end()),
                         [](const auto &info) { return std::string(info.param.name); });

/// Rank 0 sends its input to rank 1.
class OneMessage : public testing::Test {
protected:
  void start(bool mapped) {
    auto made = Simulation::make(plan::testing::chainBroadcast(2, 1), {.count = 100,
                                                                       .type = DataType::Int32,
                                                                       .referenceBytes = 1,
                                                                       .mapped = mapped,
                                                                       .hostSteps = true});
    ASSERT_TRUE(made.ok()) << made.status().message();
    simulation = std::move(*made);
    simulation->announceAll();
  }
  StepResult run(uint32_t rank) {
    return runOnHost(simulation->invocation(rank), *simulation->binding(rank).steps(0),
                     simulation->context(rank, 0), target, 100);
  }

  HostTarget target;
  std::unique_ptr<Simulation> simulation;
};

TEST_F(OneMessage, TheSenderFinishesWhenItIsConsumed) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  StepResult sender = run(0);
  EXPECT_EQ(sender.status, StepStatus::Blocked);
  EXPECT_EQ(sender.obstacle.reason, BlockReason::Credit);
  EXPECT_EQ(sender.obstacle.peer, 1u);
  // The slot has no copy: what the buffer holds now is what arrives.
  std::memset(simulation->input(0), 7, 400);
  EXPECT_EQ(run(1).status, StepStatus::Finished);
  EXPECT_EQ(simulation->output(1)[399], 7);
  EXPECT_EQ(run(0).status, StepStatus::Finished);
}

TEST_F(OneMessage, AWithdrawnBufferIsSentByValue) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  Invocation &invocation = simulation->invocation(0);
  invocation.references[0] = invocation.references[1] = 0;
  std::memset(simulation->input(0), 3, 400);
  EXPECT_EQ(run(0).status, StepStatus::Finished);
  std::memset(simulation->input(0), 7, 400);
  EXPECT_EQ(run(1).status, StepStatus::Finished);
  EXPECT_EQ(simulation->output(1)[399], 3);
}

TEST_F(OneMessage, MemoryOfADeadProcessIsAnError) {
  ASSERT_NO_FATAL_FAILURE(start(false));
  pid_t child = fork();
  if (child == 0) {
    for (;;)
      pause();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  run(0);
  PeerMemory gone = {nullptr, 0, child};
  simulation->invocation(1).peerMemory = &gone;
  uint64_t before = simulation->context(1, 0).instruction;
  StepResult result = run(1);
  EXPECT_EQ(result.status, StepStatus::PeerLost);
  EXPECT_EQ(result.obstacle.peer, 0u);
  EXPECT_EQ(simulation->context(1, 0).instruction, before);
  EXPECT_EQ(run(0).status, StepStatus::Blocked) << "nothing was published";
}

TEST_F(OneMessage, AReferenceBeyondTheMappedMemoryIsAnError) {
  ASSERT_NO_FATAL_FAILURE(start(true));
  run(0);
  char small[64];
  PeerMemory memory = {small, sizeof small, 0};
  simulation->invocation(1).peerMemory = &memory;
  errno = 0;
  EXPECT_EQ(run(1).status, StepStatus::PeerLost);
  EXPECT_EQ(errno, EFAULT);
}

/// Rank `from` fails while rank `reader` reads its buffer: the word that says so lies in what is
/// stored first to the reader's output.
class FailsMeanwhile {
public:
  FailsMeanwhile(Simulation &simulation, uint32_t reader, uint32_t from) {
    Invocation &invocation = simulation.invocation(reader);
    char *word = simulation.output(reader);
    std::memset(word, 0, sizeof(Atomic<uint32_t>));
    memory = {invocation.peerMemory[0], invocation.peerMemory[1]};
    memory[from].failedBy = reinterpret_cast<const Atomic<uint32_t> *>(word);
    invocation.peerMemory = memory.data();
    EXPECT_FALSE(memory[from].mayHaveChanged());
  }

private:
  std::array<PeerMemory, 2> memory;
};

TEST_F(OneMessage, DataOfARankThatFailsAreNotPublished) {
  for (bool mapped : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(start(mapped));
    std::memset(simulation->input(0), 3, 400);
    EXPECT_EQ(run(0).status, StepStatus::Blocked);
    FailsMeanwhile fails(*simulation, 1, 0);
    std::memset(simulation->input(0), 7, 400);
    errno = 0;
    StepResult result = run(1);
    EXPECT_EQ(errno, ECANCELED) << mapped;
    EXPECT_EQ(simulation->output(1)[399], 7) << "it has read what was stored later";
    EXPECT_EQ(result.status, StepStatus::PeerLost) << mapped;
    EXPECT_EQ(result.obstacle.peer, 0u);
    EXPECT_EQ(result.slices, 0u);
    EXPECT_EQ(run(0).status, StepStatus::Blocked) << "nothing was published";
  }
}

TEST(DirectAccess, DataOfARankThatFailsAreNotPublished) {
  auto made = Simulation::make(plan::testing::directAllReduce(2),
                               {.count = 100, .type = DataType::Int32, .hostSteps = true});
  ASSERT_TRUE(made.ok()) << made.status().message();
  Simulation &simulation = **made;
  simulation.announceAll();
  std::memset(simulation.input(1), 7, 400);
  FailsMeanwhile fails(simulation, 0, 1);
  HostTarget target;
  StepResult result = runOnHost(simulation.invocation(0), *simulation.binding(0).steps(0),
                                simulation.context(0, 0), target, 100);
  EXPECT_EQ(result.status, StepStatus::PeerLost);
  EXPECT_EQ(result.obstacle.peer, 1u);
  EXPECT_EQ(result.slices, 0u);
}

TEST(ReferencesBind, PlacesThatAreStoredToAgainAreNotReferredTo) {
  plan::PlanBuilder builder;
  uint32_t link = builder.addConnection(0, 0, {1});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  using plan::Opcode;
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {plan::input(0, 0)},
                         {plan::output(0, 0)});
  builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {plan::output(0, 0)},
                         {plan::connection(link)});
  builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {plan::input(0, 0)},
                         {plan::connection(link)});
  builder.addInstruction({.opcode = Opcode::Copy, .count = 1}, {plan::input(0, 0)},
                         {plan::output(0, 0)});
  builder.beginRank({.inputChunks = 1, .outputChunks = 1});
  builder.beginThreadBlock();
  for (int i = 0; i < 2; ++i)
    builder.addInstruction({.opcode = Opcode::Recv, .count = 1}, {plan::connection(link)},
                           {plan::output(1, 0)});
  plan::Plan plan = std::move(builder).take();
  auto bound = bind(plan, {.count = 100, .referenceBytes = 1});
  ASSERT_TRUE(bound.ok());
  const Program &program = (*bound)->program();
  EXPECT_EQ(program.instructions[1].refers, 0u) << "the output chunk is stored to twice";
  EXPECT_EQ(program.instructions[2].refers, 1u);
  EXPECT_EQ(program.blocks[0].numDrains, 1u);
  auto small = bind(plan, {.count = 100, .referenceBytes = 1000});
  EXPECT_EQ((*small)->program().blocks[0].numDrains, 0u) << "too small to be worth it";
}

} // namespace
} // namespace occl::interpreter::conformance
