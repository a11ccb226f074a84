// The stationary heat equation on a square, by Jacobi's method, on the processes of a host: each
// rank has rows of the grid, and in each iteration needs one row of each neighbour. A rank computes
// its own outer rows first, piece by piece, and sends each piece when it is made; the rows within
// it computes while they travel. Outside this repository, once OCCL is installed, the header is
// <occl/occl_partitioned.hpp>:
//   g++ -std=c++20 -O2 jacobi_hosts.cpp -o jacobi_hosts $(pkg-config --cflags --libs occl)
//   occl-run -n 2 ./jacobi_hosts 1024 200        # rows and columns, iterations
#include "runtime/api/occl_partitioned.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kPieces = 8; // of a row that is sent

/// The value of a cell in the next iteration.
float average(float above, float below, float left, float right) {
  return 0.25f * ((above + below) + (left + right));
}

/// A row that is sent to a neighbour, and the one that comes from there.
struct Exchange {
  Exchange(const occl::Communicator &comm, uint32_t n, uint32_t neighbour, int64_t tag)
      : mine(n), theirs(n), send(occl::psend<float>(comm, mine, kPieces, neighbour, tag)),
        receive(occl::precv<float>(comm, theirs, kPieces, neighbour, tag)) {}

  void start() {
    send.start();
    receive.start();
  }
  void wait() {
    send.wait();
    receive.wait();
  }

  std::vector<float> mine, theirs; // they live longer than the requests
  occl::Partitioned send, receive;
};

/// Rows of a rank, between the row above and the one below: zero at first, and at the sides; the
/// upper side of the whole grid is one.
class Solver {
public:
  Solver(const occl::Communicator &comm, uint32_t n)
      : n(n), rank(comm.rank()), numRanks(comm.numRanks()),
        numRows(firstRow(rank + 1) - firstRow(rank)), top(n, rank == 0 ? 1.0f : 0.0f), bottom(n),
        grid(uint64_t{n} * numRows), next(grid) {
    // What one iteration sends must not reach a row that the other side still reads: so there are
    // two of each, in turn.
    for (int64_t turn : {0, 1}) {
      if (rank > 0)
        up[static_cast<size_t>(turn)].emplace_back(comm, n, rank - 1, turn);
      if (rank + 1 < numRanks)
        down[static_cast<size_t>(turn)].emplace_back(comm, n, rank + 1, turn);
    }
  }

  uint32_t firstRow(uint32_t r) const { return static_cast<uint32_t>(uint64_t{n} * r / numRanks); }
  const std::vector<float> &rows() const { return grid; }

  void iterate() {
    const size_t last = iteration++ % 2, now = iteration % 2;
    for (auto *exchanges : {&up[now], &down[now]})
      for (Exchange &exchange : *exchanges)
        exchange.start();
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      sendPiece(0, piece, up[last], up[now], top);
      sendPiece(numRows - 1, piece, down[last], down[now], bottom);
    }
    for (uint32_t row = 1; row + 1 < numRows; ++row)
      compute(row, 0, n);
    std::swap(grid, next);
    if (iteration == 1)
      return; // nothing was sent before
    for (auto *exchanges : {&up[last], &down[last]})
      for (Exchange &exchange : *exchanges)
        exchange.wait();
  }
  /// What the last iteration has sent.
  void finish() {
    for (auto *exchanges : {&up[iteration % 2], &down[iteration % 2]})
      for (Exchange &exchange : *exchanges)
        exchange.wait();
  }

private:
  using Exchanges = std::vector<Exchange>; // one, or none at the side of the grid

  /// Makes a piece of an outer row as soon as what it needs of the neighbour is there; `outside` is
  /// the neighbour's row.
  void sendPiece(uint32_t row, int64_t piece, Exchanges &last, Exchanges &now,
                 std::vector<float> &outside) {
    const auto begin = static_cast<uint32_t>(piece * n / kPieces);
    const auto end = static_cast<uint32_t>((piece + 1) * n / kPieces);
    for (Exchange &exchange : last) {
      while (!exchange.receive.arrived(piece)) // true if nothing was started yet
        std::this_thread::yield();
      std::copy(&exchange.theirs[begin], &exchange.theirs[begin] + (end - begin), &outside[begin]);
    }
    compute(row, begin, end);
    for (Exchange &exchange : now) {
      std::copy(&next[at(row, begin)], &next[at(row, begin)] + (end - begin),
                &exchange.mine[begin]);
      exchange.send.ready(piece); // it travels now
    }
  }
  void compute(uint32_t row, uint32_t begin, uint32_t end) {
    const float *above = row == 0 ? top.data() : &grid[at(row - 1, 0)];
    const float *below = row + 1 == numRows ? bottom.data() : &grid[at(row + 1, 0)];
    const float *own = &grid[at(row, 0)];
    for (uint32_t i = begin; i < end; ++i)
      next[at(row, i)] =
          average(above[i], below[i], i == 0 ? 0 : own[i - 1], i + 1 == n ? 0 : own[i + 1]);
  }
  uint64_t at(uint32_t row, uint32_t column) const { return uint64_t{row} * n + column; }

  const uint32_t n, rank, numRanks, numRows;
  uint64_t iteration = 0;
  std::vector<float> top, bottom, grid, next;
  std::array<Exchanges, 2> up, down;
};

/// The whole grid by one thread.
std::vector<float> solvedAlone(uint32_t n, uint32_t iterations) {
  std::vector<float> grid(uint64_t{n} * n), next(grid);
  for (uint32_t k = 0; k < iterations; ++k) {
    for (uint32_t y = 0; y < n; ++y)
      for (uint32_t x = 0; x < n; ++x) {
        const uint64_t i = uint64_t{y} * n + x;
        next[i] = average(y == 0 ? 1 : grid[i - n], y + 1 == n ? 0 : grid[i + n],
                          x == 0 ? 0 : grid[i - 1], x + 1 == n ? 0 : grid[i + 1]);
      }
    std::swap(grid, next);
  }
  return grid;
}

int run(uint32_t n, uint32_t iterations) {
  const occl::Communicator comm = occl::Communicator::fromEnvironment();
  if (n % kPieces != 0 || n < 2 * comm.numRanks() || iterations == 0) {
    std::fprintf(stderr, "rows and columns: a multiple of %d, two rows a rank at least\n",
                 static_cast<int>(kPieces));
    return 2;
  }
  Solver solver(comm, n);
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t k = 0; k < iterations; ++k)
    solver.iterate();
  solver.finish();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const std::vector<float> expected = solvedAlone(n, iterations);
  const auto first = expected.begin() + static_cast<int64_t>(solver.firstRow(comm.rank())) * n;
  const bool isRight = std::equal(solver.rows().begin(), solver.rows().end(), first);
  std::printf("rank %u of %u: %s one thread; %.1f us an iteration\n", comm.rank(), comm.numRanks(),
              isRight ? "the same as by" : "NOT the same as by", took.count() / iterations);
  return isRight ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  try {
    return run(argc > 1 ? static_cast<uint32_t>(std::atoi(argv[1])) : 256,
               argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 100);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
