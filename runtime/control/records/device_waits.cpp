// Encodes the waits of devices as words, under a sequence lock.
#include "runtime/control/records/device_waits.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace occl::transport {

namespace {

constexpr size_t kTimes = 3;
/// Device, times, and the numbers of devices waited for and of bytes.
constexpr size_t kFixed = 1 + kTimes + 1;

size_t textWords(size_t bytes) { return (bytes + 7) / 8; }

void append(std::vector<uint64_t> &words, const DeviceWait &wait) {
  const size_t bytes = std::min(wait.text.size(), DeviceWaitBoard::kMostText);
  words.insert(words.end(), {wait.device, wait.saidAt, wait.since, wait.lookedAt,
                             uint64_t{wait.waitsFor.size()} << 32 | bytes});
  words.insert(words.end(), wait.waitsFor.begin(), wait.waitsFor.end());
  // The text goes behind the devices, in whole words.
  const size_t textAt = words.size();
  words.resize(textAt + textWords(bytes));
  std::memcpy(words.data() + textAt, wait.text.data(), bytes);
}

/// Takes the first one off `words`; nothing if they are damaged.
std::optional<DeviceWait> take(std::span<const uint64_t> &words) {
  if (words.size() < kFixed)
    return std::nullopt;
  // The numbers may be damaged: they must fit into the words that are left.
  const size_t numDevices = words[kFixed - 1] >> 32;
  const auto bytes = static_cast<uint32_t>(words[kFixed - 1]);
  if (bytes > DeviceWaitBoard::kMostText || numDevices > words.size() ||
      words.size() < kFixed + numDevices + textWords(bytes))
    return std::nullopt;
  DeviceWait wait{words[0], words[1], words[2], words[3], {}, {}};
  words = words.subspan(kFixed);
  wait.waitsFor.assign(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(numDevices));
  words = words.subspan(numDevices);
  wait.text.resize(bytes);
  std::memcpy(wait.text.data(), words.data(), bytes);
  words = words.subspan(textWords(bytes));
  return wait;
}

} // namespace

void DeviceWaitBoard::publish(std::span<const DeviceWait> waits) {
  std::vector<uint64_t> encoded;
  // A wait that does not fit ends the list.
  for (const DeviceWait &wait : waits) {
    const size_t before = encoded.size();
    append(encoded, wait);
    if (encoded.size() > kWords) {
      encoded.resize(before);
      break;
    }
  }
  lock.write([&] {
    for (size_t i = 0; i < encoded.size(); ++i)
      words[i].store(encoded[i], std::memory_order_relaxed);
    numWords.store(static_cast<uint32_t>(encoded.size()), std::memory_order_relaxed);
  });
}

std::vector<DeviceWait> DeviceWaitBoard::read() const {
  std::vector<uint64_t> encoded;
  auto version = lock.read([&] {
    encoded.resize(std::min(numWords.load(std::memory_order_relaxed), kWords));
    for (size_t i = 0; i < encoded.size(); ++i)
      encoded[i] = words[i].load(std::memory_order_relaxed);
  });
  if (!version)
    return {};
  std::vector<DeviceWait> waits;
  std::span<const uint64_t> rest = encoded;
  // Damage ends the list as well.
  while (auto wait = take(rest))
    waits.push_back(std::move(*wait));
  return waits;
}

} // namespace occl::transport
