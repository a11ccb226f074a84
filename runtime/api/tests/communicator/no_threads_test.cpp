// The process may start no more threads: what needs one for its callback is refused at the call.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <pthread.h>
#include <string>

namespace {

std::atomic<bool> refusesThreads{false};

} // namespace

/// In the place of the C library's, for the library under test, too.
extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument) {
  if (refusesThreads)
    return EAGAIN;
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, start, argument);
}

namespace occl::communicator::testing {
namespace {

void count(occlRequest_t, occlResult_t, void *calls) {
  ++*static_cast<std::atomic<uint32_t> *>(calls);
}

/// The first callback that may block starts the thread for them.
TEST(NoThreads, CallbacksThatMayBlockAreRefused) {
  Ranks ranks(1);
  std::atomic<uint32_t> calls{0};
  float value = 3;
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindAllReduce;
  call.sendBuffer = call.recvBuffer = &value;
  call.count = 1;
  refusesThreads = true;
  const occlResult_t started = occlStart(ranks[0], &call, count, &calls, nullptr);
  const std::string said = occlGetLastError();
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  const occlResult_t ended = occlGroupEndAsync(ranks[0], 0, count, &calls, nullptr);
  const std::string saidOfGroup = occlGetLastError();
  // What never blocks needs none.
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlGroupEndAsync(ranks[0], 1, count, &calls, nullptr), occlSuccess);
  EXPECT_EQ(calls, 1u);
  refusesThreads = false;
  EXPECT_EQ(started, occlSystemError);
  EXPECT_EQ(ended, occlSystemError);
  EXPECT_NE(said.find("starting a thread for callbacks"), std::string::npos) << said;
  EXPECT_NE(saidOfGroup.find("starting a thread for callbacks"), std::string::npos) << saidOfGroup;
  EXPECT_EQ(occlStart(ranks[0], &call, count, &calls, nullptr), occlSuccess);
  ASSERT_EQ(occlGroupStart(), occlSuccess);
  EXPECT_EQ(occlGroupEndAsync(ranks[0], 0, count, &calls, nullptr), occlSuccess);
  ranks.destroy(0); // waits for the callbacks
  EXPECT_EQ(calls, 3u);
}

} // namespace
} // namespace occl::communicator::testing
