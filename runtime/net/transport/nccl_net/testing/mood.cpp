#include "runtime/net/transport/nccl_net/testing/mood.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace occl::net::test_plugin {
namespace {

/// One a process, so that a run can be repeated.
uint64_t processSeed(uint64_t given) {
  static const uint64_t seed = [&] {
    if (given != 0)
      return given;
    const uint64_t drawn = std::random_device{}();
    std::fprintf(stderr, "OCCL_TEST_PLUGIN=seed=%llu\n", static_cast<unsigned long long>(drawn));
    return drawn;
  }();
  return seed;
}

} // namespace

Mood Mood::now() {
  Mood mood;
  uint64_t seed = 0;
  const auto take = [&](std::string_view word) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : word.substr(equals + 1));
    const auto number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "unpleasant") {
      mood.null = mood.late = 30;
      mood.isPartial = mood.writesAfterClose = true;
    }
    if (name == "null")
      mood.null = static_cast<unsigned>(number);
    if (name == "late")
      mood.late = static_cast<unsigned>(number);
    if (name == "devices")
      mood.devices = static_cast<int>(number);
    if (name == "bytes")
      mood.bytes = number;
    if (name == "fails")
      mood.fails = value;
    if (name == "fails_after")
      mood.failsAfter = number;
    if (name == "seed")
      seed = number;
    mood.isPartial |= name == "partial";
    mood.writesAfterClose |= name == "writes_after_close";
    mood.swallows |= name == "swallows";
  };
  const char *text = std::getenv("OCCL_TEST_PLUGIN");
  for (std::string_view rest = text ? text : ""; !rest.empty();) {
    const size_t comma = rest.find(',');
    take(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  static std::atomic<uint64_t> numMoods{0};
  if (mood.null != 0 || mood.late != 0 || mood.isPartial)
    mood.random.seed(static_cast<unsigned>(processSeed(seed) + ++numMoods));
  return mood;
}

} // namespace occl::net::test_plugin
