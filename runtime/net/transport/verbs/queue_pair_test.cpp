// Queue pairs of a device that is none: all queues have one address, and it fails when it is told
// to.
#include "runtime/net/transport/verbs/queue_pair.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

namespace occl::net {
namespace {

ibv_comp_channel channel;
ibv_cq completions;
ibv_pd protection;
ibv_qp pair;
std::optional<ibv_async_event> event;

Ibverbs withoutDevice() {
  channel.fd = -1;
  Ibverbs verbs;
  verbs.create_comp_channel = [](ibv_context *) { return &channel; };
  verbs.destroy_comp_channel = [](ibv_comp_channel *) { return 0; };
  verbs.create_cq = [](ibv_context *, int, void *, ibv_comp_channel *, int) {
    return &completions;
  };
  verbs.destroy_cq = [](ibv_cq *) { return 0; };
  verbs.get_cq_event = [](ibv_comp_channel *, ibv_cq **, void **) { return -1; };
  verbs.alloc_pd = [](ibv_context *) { return &protection; };
  verbs.dealloc_pd = [](ibv_pd *) { return 0; };
  verbs.create_qp = [](ibv_pd *, ibv_qp_init_attr *) { return &pair; };
  verbs.modify_qp = [](ibv_qp *, ibv_qp_attr *, int) { return 0; };
  verbs.destroy_qp = [](ibv_qp *) { return 0; };
  verbs.get_async_event = [](ibv_context *, ibv_async_event *taken) {
    if (!event)
      return -1;
    *taken = *event;
    event.reset();
    return 0;
  };
  verbs.ack_async_event = [](ibv_async_event *) {};
  return verbs;
}

ibv_context noContext() {
  ibv_context context{};
  context.cmd_fd = context.async_fd = -1;
  return context;
}

class QueuePairOfADevice : public ::testing::Test {
protected:
  std::unique_ptr<QueuePair> make() {
    RdmaPort port;
    port.device = &device;
    auto made = QueuePair::make(port, 1, 1);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::move(*made) : nullptr;
  }

  Ibverbs verbs = withoutDevice();
  ibv_context context = noContext();
  RdmaDevice device{verbs, &context, "none"};
};

TEST_F(QueuePairOfADevice, OneAtTheAddressOfAFailedPairHasNotFailed) {
  auto first = make();
  EXPECT_FALSE(first->hasFailed());
  event = {.element = {.qp = &pair}, .event_type = IBV_EVENT_QP_FATAL};
  EXPECT_TRUE(first->hasFailed());
  EXPECT_TRUE(first->hasFailed()) << "the event is remembered";
  first.reset();
  EXPECT_FALSE(make()->hasFailed());
}

TEST_F(QueuePairOfADevice, OneAtTheAddressOfAFailedCompletionQueueHasNotFailed) {
  auto first = make();
  event = {.element = {.cq = &completions}, .event_type = IBV_EVENT_CQ_ERR};
  EXPECT_TRUE(first->hasFailed());
  first.reset();
  EXPECT_FALSE(make()->hasFailed());
}

TEST_F(QueuePairOfADevice, AllOfABrokenDeviceHaveFailed) {
  auto first = make();
  event = {.element = {}, .event_type = IBV_EVENT_DEVICE_FATAL};
  EXPECT_TRUE(first->hasFailed());
  first.reset();
  EXPECT_TRUE(make()->hasFailed());
}

} // namespace
} // namespace occl::net
