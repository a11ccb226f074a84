// Whether a guest of run.py is one that RDMA can be tested in: devices, addresses, all that a queue
// pair does, and that faults of links reach it. Nothing of OCCL is in it. Without
// OCCL_REQUIRE_VERBS, which make verbs sets, it is left out.
#include "test/verbs/link.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC;
constexpr auto kPatience = 60s;

enum class Family { V4, V6 };

// A queue pair on a device of its own, with memory that the other side may access.
class Side {
public:
  Side(const char *device, std::size_t bytes, Family family)
      : memory(bytes / sizeof(std::uint64_t)) {
    open(device);
    if (!context)
      return;
    domain = ibv_alloc_pd(context);
    completions = ibv_create_cq(context, 64, nullptr, nullptr, 0);
    region = ibv_reg_mr(domain, memory.data(), bytes, kAccess);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = completions;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {64, 64, 1, 1, 64};
    pair = ibv_create_qp(domain, &wanted);
    findAddress(family);
  }

  ~Side() {
    if (pair)
      ibv_destroy_qp(pair);
    if (region)
      ibv_dereg_mr(region);
    if (completions)
      ibv_destroy_cq(completions);
    if (domain)
      ibv_dealloc_pd(domain);
    if (context)
      ibv_close_device(context);
  }

  Side(const Side &) = delete;
  Side &operator=(const Side &) = delete;

  bool isComplete() const { return pair && region && addressIndex >= 0; }

  // 4 us * 2^timeout are waited for an answer, several times.
  bool connect(const Side &other, std::uint8_t timeout = 14) {
    ibv_qp_attr step{};
    step.qp_state = IBV_QPS_INIT;
    step.port_num = 1;
    step.qp_access_flags = kAccess;
    if (ibv_modify_qp(pair, &step,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
      return false;
    step = {};
    step.qp_state = IBV_QPS_RTR;
    step.path_mtu = IBV_MTU_1024;
    step.dest_qp_num = other.pair->qp_num;
    step.max_dest_rd_atomic = 1;
    step.min_rnr_timer = 12;
    step.ah_attr.is_global = 1;
    step.ah_attr.port_num = 1;
    step.ah_attr.grh.dgid = other.address;
    step.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(addressIndex);
    step.ah_attr.grh.hop_limit = 64;
    if (ibv_modify_qp(pair, &step,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
      return false;
    step = {};
    step.qp_state = IBV_QPS_RTS;
    step.timeout = timeout;
    step.retry_cnt = 6; // soft RoCE takes 7 for ever
    step.rnr_retry = 6;
    step.max_rd_atomic = 1;
    return !ibv_modify_qp(pair, &step,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }

  // Between the beginnings of both memories; returns how it ended.
  ibv_wc_status perform(ibv_wr_opcode opcode, const Side &other, std::uint32_t bytes,
                        std::uint64_t added = 0) {
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(memory.data()), bytes, region->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = kImmediate;
    const auto remote = reinterpret_cast<std::uintptr_t>(other.memory.data());
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      request.wr.atomic.remote_addr = remote;
      request.wr.atomic.rkey = other.region->rkey;
      request.wr.atomic.compare_add = added;
    } else {
      request.wr.rdma.remote_addr = remote;
      request.wr.rdma.rkey = other.region->rkey;
    }
    if (ibv_post_send(pair, &request, &bad))
      return IBV_WC_GENERAL_ERR;
    return next().status;
  }

  bool expectImmediate() {
    ibv_recv_wr request{}, *bad = nullptr;
    return !ibv_post_recv(pair, &request, &bad);
  }

  ibv_wc next() {
    ibv_wc completion{};
    const auto deadline = Clock::now() + kPatience;
    while (ibv_poll_cq(completions, 1, &completion) == 0) {
      if (Clock::now() > deadline) {
        completion.status = IBV_WC_GENERAL_ERR;
        break;
      }
      std::this_thread::sleep_for(50us); // the guest has one processor
    }
    return completion;
  }

  bool awaitEvent(ibv_event_type wanted) {
    fcntl(context->async_fd, F_SETFL, O_NONBLOCK);
    for (const auto deadline = Clock::now() + kPatience; Clock::now() < deadline;) {
      ibv_async_event event{};
      if (ibv_get_async_event(context, &event)) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const ibv_event_type type = event.event_type;
      ibv_ack_async_event(&event);
      if (type == wanted)
        return true;
    }
    return false;
  }

  static constexpr std::uint32_t kImmediate = 0x12345678;
  std::vector<std::uint64_t> memory;

private:
  void open(const char *wanted) {
    int count = 0;
    ibv_device **devices = ibv_get_device_list(&count);
    for (int i = 0; i < count; ++i)
      if (!std::strcmp(ibv_get_device_name(devices[i]), wanted))
        context = ibv_open_device(devices[i]);
    if (devices)
      ibv_free_device_list(devices);
  }

  // The table's order is that of events, and differs from time to time.
  void findAddress(Family family) {
    std::vector<ibv_gid_entry> entries(64);
    const auto count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
    const std::uint8_t v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const std::uint8_t v6[2] = {0xfd, 0x77};
    for (long i = 0; i < count; ++i) {
      const ibv_gid_entry &entry = entries[static_cast<std::size_t>(i)];
      const bool fits = family == Family::V4 ? !std::memcmp(entry.gid.raw, v4, sizeof v4)
                                             : !std::memcmp(entry.gid.raw, v6, sizeof v6);
      if (!fits || entry.gid_type != IBV_GID_TYPE_ROCE_V2)
        continue;
      address = entry.gid;
      addressIndex = static_cast<int>(entry.gid_index);
    }
  }

  ibv_context *context = nullptr;
  ibv_pd *domain = nullptr;
  ibv_cq *completions = nullptr;
  ibv_mr *region = nullptr;
  ibv_qp *pair = nullptr;
  ibv_gid address{};
  int addressIndex = -1;
};

// Two queue pairs that are connected, from one device to another.
struct Connection {
  explicit Connection(std::size_t bytes, Family family = Family::V4, std::uint8_t timeout = 14)
      : one("rxe0", bytes, family), two("rxe1", bytes, family) {
    std::iota(one.memory.begin(), one.memory.end(), 1u);
    isUp = one.isComplete() && two.isComplete() && one.connect(two, timeout) &&
           two.connect(one, timeout);
  }

  Side one, two;
  bool isUp;
};

int devices() {
  int count = 0;
  if (ibv_device **list = ibv_get_device_list(&count))
    ibv_free_device_list(list);
  return count;
}

std::uint64_t sentBy(const std::string &interface) {
  std::uint64_t bytes = 0;
  std::ifstream("/sys/class/net/" + interface + "/statistics/tx_bytes") >> bytes;
  return bytes;
}

class Environment : public ::testing::Test {
protected:
  void SetUp() override {
    const char *required = std::getenv("OCCL_REQUIRE_VERBS");
    if (!required || !*required)
      GTEST_SKIP() << "NOTHING was tested: this is for make verbs";
    ASSERT_GE(devices(), 2);
  }

  void TearDown() override {
    if (!IsSkipped() && devices() >= 2)
      for (const char *nic : {"nic0", "nic1"})
        link(std::string(nic) + " clear");
  }
};

class Families : public Environment, public ::testing::WithParamInterface<Family> {};

TEST_P(Families, AQueuePairWritesReadsAndAddsRemotely) {
  constexpr std::size_t kBytes = 4 << 20;
  Connection c(kBytes, GetParam());
  ASSERT_TRUE(c.isUp);
  const std::uint64_t before = sentBy("nic0");
  EXPECT_EQ(c.one.perform(IBV_WR_RDMA_WRITE, c.two, kBytes), IBV_WC_SUCCESS);
  EXPECT_TRUE(c.one.memory == c.two.memory);
  EXPECT_GT(sentBy("nic0") - before, kBytes) << "it did not go over the cable";

  ASSERT_TRUE(c.two.expectImmediate());
  EXPECT_EQ(c.one.perform(IBV_WR_RDMA_WRITE_WITH_IMM, c.two, 8), IBV_WC_SUCCESS);
  const ibv_wc received = c.two.next();
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received.imm_data, Side::kImmediate);

  std::reverse(c.two.memory.begin(), c.two.memory.end());
  EXPECT_EQ(c.one.perform(IBV_WR_RDMA_READ, c.two, kBytes), IBV_WC_SUCCESS);
  EXPECT_TRUE(c.one.memory == c.two.memory);

  c.two.memory[0] = 40;
  EXPECT_EQ(c.one.perform(IBV_WR_ATOMIC_FETCH_AND_ADD, c.two, 8, 2), IBV_WC_SUCCESS);
  EXPECT_EQ(c.one.memory[0], 40u);
  EXPECT_EQ(c.two.memory[0], 42u);
}

INSTANTIATE_TEST_SUITE_P(Both, Families, ::testing::Values(Family::V4, Family::V6),
                         [](const auto &info) { return info.param == Family::V4 ? "V4" : "V6"; });

TEST_F(Environment, ALinkThatLosesDelaysAndReordersIsRight) {
  constexpr std::size_t kBytes = 64 << 10;
  for (const char *fault : {"loss 1%", "delay 2ms", "delay 1ms reorder 1%", "loss 1% delay 1ms"}) {
    for (const char *way : {"nic0 out ", "nic0 in "})
      link(std::string(way) + fault);
    Connection c(kBytes);
    ASSERT_TRUE(c.isUp) << fault;
    for (std::uint64_t i = 0; i < 32; ++i) {
      c.one.memory[0] = i;
      ASSERT_EQ(c.one.perform(IBV_WR_RDMA_WRITE, c.two, kBytes), IBV_WC_SUCCESS)
          << fault << ", " << i;
      ASSERT_TRUE(c.one.memory == c.two.memory) << fault;
    }
  }
}

TEST_F(Environment, ADelayIsSeen) {
  Connection c(8);
  ASSERT_TRUE(c.isUp);
  link("nic0 in delay 30ms");
  const auto begin = Clock::now();
  EXPECT_EQ(c.one.perform(IBV_WR_RDMA_WRITE, c.two, 8), IBV_WC_SUCCESS);
  EXPECT_GE(Clock::now() - begin, 30ms);
}

TEST_F(Environment, ALinkThatLosesAllEndsAConnection) {
  Connection c(4096, Family::V4, 12);
  ASSERT_TRUE(c.isUp);
  link("nic1 in loss 100%");
  EXPECT_EQ(c.one.perform(IBV_WR_RDMA_WRITE, c.two, 4096), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(Environment, ACableThatIsUnpluggedIsNoticed) {
  Connection c(4096, Family::V4, 12);
  ASSERT_TRUE(c.isUp);
  link("nic1 unplug");
  EXPECT_TRUE(c.two.awaitEvent(IBV_EVENT_PORT_ERR));
  EXPECT_EQ(c.one.perform(IBV_WR_RDMA_WRITE, c.two, 4096), IBV_WC_RETRY_EXC_ERR);

  link("nic1 plug");
  EXPECT_TRUE(c.two.awaitEvent(IBV_EVENT_PORT_ACTIVE));
  Connection other(4096);
  ASSERT_TRUE(other.isUp);
  EXPECT_EQ(other.one.perform(IBV_WR_RDMA_WRITE, other.two, 4096), IBV_WC_SUCCESS);
  EXPECT_TRUE(other.one.memory == other.two.memory);
}

} // namespace
