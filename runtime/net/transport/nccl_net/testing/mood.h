// How the network plugin of tests behaves: by the environment variable OCCL_TEST_PLUGIN, words with
// commas between them:
//   unpleasant     null=30,late=30,partial,writes_after_close
//   null=P         P of 100 calls of connect, accept, isend and irecv give null
//   late=P         P of 100 tests of what is done say that it is not
//   partial        sockets are given few bytes at a time
//   writes_after_close   into the memory of receives under way, for a while
//   devices=N      so many, 1 if it is not there
//   bytes=N        the most of a request
//   fails=NAME     that function fails
//   fails_after=N  isend and irecv fail after so many of them, by a comm
//   swallows       what is sent never arrives
//   seed=N         of all that; printed if there is none
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace occl::net::test_plugin {

struct Mood {
  unsigned null = 0, late = 0;
  bool isPartial = false, writesAfterClose = false, swallows = false;
  int devices = 1;
  size_t bytes = size_t{1} << 30;
  std::string fails;
  uint64_t failsAfter = ~uint64_t{0};
  std::mt19937 random;

  /// Of the environment as it is now.
  static Mood now();
  bool happens(unsigned percent) { return percent != 0 && random() % 100 < percent; }
};

} // namespace occl::net::test_plugin
