#include "runtime/control/records/device_waits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace occl::transport {
namespace {

/// As in a page that has just been mapped.
std::unique_ptr<DeviceWaitBoard> makeBoard() { return std::make_unique<DeviceWaitBoard>(); }

DeviceWait waitOf(DeviceId device, std::vector<DeviceId> waitsFor, std::string text) {
  return {device, 10 * device, 20 * device, 30 * device, std::move(waitsFor), std::move(text)};
}

TEST(DeviceWaitBoard, ReadsWhatWasPublished) {
  auto board = makeBoard();
  EXPECT_TRUE(board->read().empty());
  EXPECT_EQ(board->device(), 0u);
  board->setOwner(7);
  EXPECT_EQ(board->device(), 7u);
  std::vector<DeviceWait> waits{waitOf(7, {8, 9}, "seven waits"), waitOf(8, {}, ""),
                                waitOf(9, {7}, "12345678")};
  board->publish(waits);
  EXPECT_EQ(board->read(), waits);
  board->publish({});
  EXPECT_TRUE(board->read().empty());
}

TEST(DeviceWaitBoard, DropsWhatDoesNotFitAndKeepsTheFirst) {
  auto board = makeBoard();
  std::vector<DeviceWait> waits;
  for (DeviceId device = 1; device <= 1000; ++device)
    waits.push_back(waitOf(device, {device + 1}, std::string(1000, 'x')));
  board->publish(waits);
  std::vector<DeviceWait> read = board->read();
  // Each takes 5 words, one for the device waited for, and 60 of text.
  ASSERT_EQ(read.size(), DeviceWaitBoard::kWords / 66);
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].device, i + 1);
    EXPECT_EQ(read[i].text, std::string(DeviceWaitBoard::kMostText, 'x'));
  }
  waits = {waitOf(1, std::vector<DeviceId>(1023, 5), "a rank of 1024 that waits for all others")};
  board->publish(waits);
  EXPECT_EQ(board->read(), waits);
}

TEST(DeviceWaitBoard, ReadersNeverSeeATornList) {
  auto board = makeBoard();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (DeviceId i = 1; !stop.load(); ++i)
      board->publish(std::vector<DeviceWait>(
          i % 8, waitOf(i, std::vector<DeviceId>(i % 5, i), std::string(i % 50, 'x'))));
  });
  for (int i = 0; i < 5000; ++i) {
    std::vector<DeviceWait> waits = board->read();
    for (const DeviceWait &wait : waits) {
      DeviceId n = wait.device;
      ASSERT_EQ(n % 8, waits.size());
      ASSERT_EQ(wait, waitOf(n, std::vector<DeviceId>(n % 5, n), std::string(n % 50, 'x')));
    }
  }
  stop.store(true);
  writer.join();
}

} // namespace
} // namespace occl::transport
