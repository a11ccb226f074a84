// Faults at a chosen point of a process. Built for exploration (runtime/sync/explored.h), every
// access to a shared word calls a hook; here the threads are real, and run one at a time. Points
// are: stores and read-modify-writes to memory that other processes map, each before it happens,
// and the system calls that set up and tear down. Between two of them nothing changes that another
// process can see, but bytes that nobody reads before a later one says that they are there.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

namespace occl::faults {

enum class Kind {
  None,
  Kill,    // SIGKILL
  Stop,    // SIGSTOP
  Delay,   // all of the process sleeps for some milliseconds
  Corrupt, // another value is stored; elsewhere nothing happens
  Exhaust  // no more file descriptors are to be had
};

/// Lies in memory that the process shares with its parent.
struct Record {
  uint64_t points = 0;            // passed so far
  char where[256] = {};           // what was next, "store at file:line"
  std::atomic<bool> hit{false};   // the fault is injected
  std::atomic<bool> ended{false}; // set by the test: the process has done all it had to
  std::atomic<uint32_t> files{0}; // bit i: a point lay in file i of watch()
};

/// At most 32 parts of file names, which stay valid: Record::files says which are met. Before
/// arm().
void watch(std::span<const char *const> files);

/// From now on this process counts points, and at the `point`-th, from 1, has the fault. `record`
/// stays valid; null: it counts no more.
void arm(Kind kind, uint64_t point, Record *record);

/// After Kind::Exhaust: there are file descriptors again.
void relieve();

} // namespace occl::faults
