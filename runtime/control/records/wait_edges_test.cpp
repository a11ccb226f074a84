#include "runtime/control/records/wait_edges.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace occl::transport {
namespace {

TEST(WaitEdgeBoard, ReadsWhatWasPublished) {
  auto board = std::make_unique<WaitEdgeBoard>();
  EXPECT_TRUE(board->read().edges.empty());
  WaitEdge edge{7, 3, 1, 2, WaitReason::Credit, 5};
  board->publish({&edge, 1});
  EXPECT_EQ(board->read().edges, std::vector{edge});
  uint64_t version = board->read().version;
  board->publish({&edge, 1});
  EXPECT_EQ(board->read().version, version) << "the same edges again are no news";
  board->clear();
  EXPECT_TRUE(board->read().edges.empty());
  EXPECT_GT(board->read().version, version);
}

TEST(WaitEdgeBoard, DropsWhatDoesNotFit) {
  auto board = std::make_unique<WaitEdgeBoard>();
  std::vector<WaitEdge> edges(WaitEdgeBoard::kMaxEdges + 10);
  board->publish(edges);
  EXPECT_EQ(board->read().edges.size(), WaitEdgeBoard::kMaxEdges);
}

TEST(WaitEdgeBoard, ReadersNeverSeeATornList) {
  auto board = std::make_unique<WaitEdgeBoard>();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint32_t i = 1; !stop.load(); ++i) {
      std::vector<WaitEdge> edges(i % 8, WaitEdge{i, i, i, i, WaitReason::Data, i});
      board->publish(edges);
    }
  });
  for (int i = 0; i < 20000; ++i) {
    WaitSnapshot snapshot = board->read();
    for (const WaitEdge &edge : snapshot.edges) {
      ASSERT_EQ(edge, snapshot.edges.front());
      ASSERT_EQ(edge.collective % 8, snapshot.edges.size());
    }
  }
  stop.store(true);
  writer.join();
}

} // namespace
} // namespace occl::transport
