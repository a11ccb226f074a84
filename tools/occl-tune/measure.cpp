#include "tools/occl-tune/measure.h"

#include "runtime/api/occl.h"
#include "tools/occl-run/launch/launcher.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace occl::tune {

namespace {

constexpr uint32_t kBatches = 5;

/// Calls in a batch: enough to be timed, and not seconds.
uint32_t callsOf(uint64_t bytes) {
  return static_cast<uint32_t>(std::clamp<uint64_t>((uint64_t{8} << 20) / bytes, 5, 200));
}

/// A file that the processes of ranks read, as long as this is there.
class TableFile {
public:
  explicit TableFile(const std::string &text) {
    file = mkstemp(name.data());
    if (file >= 0 && write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      isWhole = false;
  }
  ~TableFile() {
    if (file >= 0) {
      close(file);
      unlink(name.c_str());
    }
  }
  TableFile(const TableFile &) = delete;
  TableFile &operator=(const TableFile &) = delete;

  bool isThere() const { return file >= 0 && isWhole; }
  const char *path() const { return name.c_str(); }

private:
  std::string name = "/tmp/occl-tune-XXXXXX";
  int file = -1;
  bool isWhole = true;
};

/// One rank's part of a measurement.
class Rank {
public:
  Rank(const Case &of, int results) : of(of), results(results) {}

  int run() {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    // A plan that hangs is a failure after a minute, not for ever.
    config.timeoutMs = 60'000;
    if (occlCommInitFromEnv(&comm, &config) != occlSuccess)
      return fail();
    uint32_t number = 0;
    occlCommRank(comm, &number);
    // The largest size, of the buffer that has all parts; written once, so that its pages exist.
    const size_t floats = of.sizes.back() / sizeof(float) * of.numRanks;
    send.assign(floats, 1);
    receive.assign(floats, 1);
    // Each size several times, and the median of these: one batch may be disturbed.
    for (const uint64_t bytes : of.sizes) {
      std::array<double, kBatches> times{};
      for (double &time : times)
        if (!timeBatch(bytes, time))
          return fail();
      std::ranges::sort(times);
      const double median = times[kBatches / 2];
      // The first rank's times: the batches begin and end together.
      if (number == 0 && write(results, &median, sizeof median) != sizeof median)
        return 1;
    }
    occlCommDestroy(comm);
    return 0;
  }

private:
  int fail() const {
    std::fprintf(stderr, "occl tune: %s\n", occlGetLastError());
    return 1;
  }

  bool call(occlKind_t kind, uint64_t count) {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = kind;
    call.sendBuffer = send.data();
    call.recvBuffer = receive.data();
    call.count = count;
    call.dataType = occlFloat32;
    call.op = occlMax; // numbers stay what they are
    return occlCall(comm, &call, nullptr) == occlSuccess;
  }

  /// All ranks begin and end together: a broadcast's root is done before the others are.
  bool meet() { return call(occlKindAllReduce, 1); }

  bool timeBatch(uint64_t bytes, double &microseconds) {
    const auto kind = static_cast<occlKind_t>(static_cast<int>(of.kind) + occlKindAllReduce);
    const uint64_t count = bytes / sizeof(float);
    // Small ones are called more often, so that a batch takes about as long for each size.
    const uint32_t calls = callsOf(bytes);
    // The first call makes connections and loads the plan.
    if (!call(kind, count) || !meet())
      return false;
    // One measurement over many calls, as a clock cannot resolve one.
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < calls; ++i)
      if (!call(kind, count))
        return false;
    if (!meet())
      return false;
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    microseconds = took.count() / calls;
    return true;
  }

  const Case &of;
  const int results;
  occlComm_t comm = nullptr;
  std::vector<float> send, receive;
};

} // namespace

std::optional<std::vector<double>> measure(const Case &of, const std::string &table) {
  // The plan is chosen as users choose it, by a table that OCCL_PLAN_TABLE names: so exactly that
  // is measured.
  const TableFile file(table);
  int results[2] = {};
  if (!file.isThere() || pipe(results) != 0) {
    std::perror("occl tune: no temporary file or pipe");
    return std::nullopt;
  }
  // Each rank is a process, forked from this one before it has any communicator.
  const auto body = [&](uint32_t) {
    setenv("OCCL_PLAN_TABLE", file.path(), 1);
    return Rank(of, results[1]).run();
  };
  const int status =
      run::launch({.numRanks = of.numRanks, .command = {}, .body = body, .tagOutput = false});
  // So that reading ends if the ranks have written less.
  close(results[1]);
  std::vector<double> times(of.sizes.size());
  const auto wanted = static_cast<ssize_t>(times.size() * sizeof(double));
  const bool isWhole = read(results[0], times.data(), static_cast<size_t>(wanted)) == wanted;
  close(results[0]);
  return status == 0 && isWhole ? std::optional(times) : std::nullopt;
}

} // namespace occl::tune
