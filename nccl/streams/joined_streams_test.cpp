// What joined streams ask of the driver, here one that writes down what it is told.
#include "nccl/streams/joined_streams.h"

#include <gtest/gtest.h>

#include <initializer_list>

using namespace occl::nccl;

namespace {

/// Streams and events are numbers; so are the thread's device and its context, 100 more.
struct Told {
  std::vector<std::string> calls;
  int device = 0, events = 0, retained = 0, mode = 0;
  const char *fails = "";

  int note(const char *name, const std::string &what) {
    calls.push_back(what);
    return std::string(name) == fails ? 1 : 0;
  }
} told;

std::string text(const void *number) { return std::to_string(reinterpret_cast<uintptr_t>(number)); }
cudaStream_t stream(uintptr_t number) { return reinterpret_cast<cudaStream_t>(number); }

CudaDriver fake() {
  CudaDriver driver;
  driver.isThere = true;
  driver.currentContext = [](void **context) {
    *context = reinterpret_cast<void *>(static_cast<uintptr_t>(100 + told.device));
    return 0;
  };
  driver.currentDevice = [](int *device) {
    *device = told.device;
    return 0;
  };
  driver.deviceOf = [](int *number, int device) {
    *number = device;
    return 0;
  };
  driver.retainContext = [](void **context, int device) {
    ++told.retained;
    *context = reinterpret_cast<void *>(static_cast<uintptr_t>(100 + device));
    return 0;
  };
  driver.releaseContext = [](int) {
    --told.retained;
    return 0;
  };
  driver.setContext = [](void *context) {
    told.device = static_cast<int>(reinterpret_cast<uintptr_t>(context)) - 100;
    return 0;
  };
  driver.makeEvent = [](void **event, unsigned) {
    *event = reinterpret_cast<void *>(static_cast<uintptr_t>(++told.events));
    return 0;
  };
  driver.recordEvent = [](void *event, cudaStream_t in) {
    return told.note("record", "event " + text(event) + " in " + text(in) + " of device " +
                                   std::to_string(told.device));
  };
  driver.awaitEvent = [](cudaStream_t in, void *event, unsigned) {
    return told.note("await", text(in) + " waits for event " + text(event));
  };
  driver.destroyEvent = [](void *event) { return told.note("", "no event " + text(event)); };
  driver.exchangeCaptureMode = [](int *mode) {
    std::swap(*mode, told.mode);
    return 0;
  };
  driver.errorName = [](int, const char **name) {
    *name = "CUDA_ERROR";
    return 0;
  };
  return driver;
}

Batch batchOf(std::initializer_list<uintptr_t> collectives,
              std::initializer_list<uintptr_t> transfers) {
  Batch batch;
  for (const bool isCollective : {true, false})
    for (uintptr_t number : isCollective ? collectives : transfers) {
      Operation operation;
      operation.kind = isCollective ? OperationKind::Collective : OperationKind::Send;
      operation.stream = stream(number);
      batch.add(operation);
    }
  return batch;
}

class Joined : public ::testing::Test {
protected:
  void SetUp() override { told = {}; }
  void TearDown() override { // as it was found
    EXPECT_EQ(told.device, 0);
    EXPECT_EQ(told.mode, 0);
    EXPECT_EQ(told.retained, 0);
  }

  const CudaDriver driver = fake();
};

using Calls = std::vector<std::string>;

} // namespace

TEST_F(Joined, OneStreamCostsNothing) {
  for (Batch batch : {batchOf({7, 7}, {7}), batchOf({}, {7, 8}), batchOf({}, {})}) {
    const size_t numCollectives = batch.collectives.size();
    JoinedStreams joined(driver);
    EXPECT_TRUE(joined.begin(batch, 0).ok());
    EXPECT_TRUE(joined.end().ok());
    EXPECT_EQ(told.calls, Calls());
    EXPECT_EQ(batch.collectives.size(), numCollectives);
  }
}

TEST_F(Joined, TheFirstWaitsForAllBeforeAndAllForItAfterwards) {
  Batch batch = batchOf({7, 8, 7}, {9});
  JoinedStreams joined(driver);
  ASSERT_TRUE(joined.begin(batch, 2).ok());
  EXPECT_EQ(told.calls, (Calls{"event 1 in 8 of device 2", "7 waits for event 1", "no event 1",
                               "event 2 in 9 of device 2", "7 waits for event 2", "no event 2"}));
  for (const auto *operations : {&batch.collectives, &batch.transfers})
    for (const Operation &operation : *operations)
      EXPECT_EQ(operation.stream, stream(7));
  told.calls.clear();
  ASSERT_TRUE(joined.end().ok());
  EXPECT_EQ(told.calls, (Calls{"event 3 in 7 of device 2", "8 waits for event 3",
                               "9 waits for event 3", "no event 3"}));
}

TEST_F(Joined, ACallThatCudaRefusesIsSaidAndLeavesTheBatch) {
  for (const char *fails : {"record", "await"}) {
    told.fails = fails;
    Batch batch = batchOf({7, 8}, {});
    JoinedStreams joined(driver);
    const Outcome outcome = joined.begin(batch, 0);
    EXPECT_EQ(outcome.result, ncclUnhandledCudaError);
    EXPECT_NE(outcome.text.find("CUDA_ERROR"), std::string::npos) << outcome.text;
    EXPECT_EQ(batch.collectives[1].stream, stream(8));
    told.calls.clear();
    EXPECT_TRUE(joined.end().ok()); // there is nothing to end
    EXPECT_EQ(told.calls, Calls());
  }
}
