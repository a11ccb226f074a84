// gpu_gemm <ranks> [check]: a product of matrices of bfloat16 by cuBLAS, M x 4096 times 4096 x
// 8192, and its sum over all ranks, each a process. Every form's sums are compared with what the
// host computes in whole numbers before it is timed, of matrices whose sums are exact; timed are
// others that have no zeroes. A row for each M: microseconds; overlap: how much is gained of what
// product and sum side by side would gain, (in turn - ours) / (in turn - the longer of the two).
#include "bench/gpu/applications/cublas_library.h"
#include "bench/gpu/applications/rank.h"
#include "examples/partitioned/bands.h"
#include "examples/partitioned/check.h"
#include "runtime/api/occl_collectives.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

using namespace occl::bench;
using occl::examples::BandsShape;
using occl::examples::check;
using occl::examples::ProductInBands;

namespace {

constexpr uint64_t kColumns = 8192, kInner = 4096, kSmallest = 512, kLargest = 8192;
/// Of the matrices that are compared: what is not zero in a row of the left one.
constexpr uint64_t kInRow = 8;
/// All rows are compared, of the columns every so many.
constexpr uint64_t kSampled = 31;
/// Multiprocessors that cuBLAS may be told to leave.
constexpr uint32_t kLeft = 16;

uint16_t bfloat16Of(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); // exact, or cut off
}

uint32_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<uint32_t>(x >> 32);
}
/// Where the j-th of a row of rank r's left matrix is that is not zero, and whether it is 1 or -1.
uint64_t placeOf(uint32_t rank, uint64_t row, uint64_t j) {
  return j * (kInner / kInRow) + mixed(row * 64 + rank, j) % (kInner / kInRow);
}
int leftOf(uint32_t rank, uint64_t row, uint64_t j) {
  return mixed(row * 64 + rank, j) >> 31 ? 1 : -1;
}
int rightOf(uint32_t rank, uint64_t row, uint64_t column) {
  return static_cast<int>(mixed(row * 64 + rank, column) % 5) - 2;
}

/// Matrices as they lie in memory.
struct Matrices {
  explicit Matrices(uint64_t rows) : left(rows * kInner), right(kInner * kColumns) {}
  std::vector<uint16_t> left, right;
};
Matrices comparedOnes(uint32_t rank, uint64_t rows) {
  Matrices all(rows);
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t j = 0; j < kInRow; ++j)
      all.left[row * kInner + placeOf(rank, row, j)] =
          bfloat16Of(static_cast<float>(leftOf(rank, row, j)));
  for (uint64_t i = 0; i < all.right.size(); ++i)
    all.right[i] = bfloat16Of(static_cast<float>(rightOf(rank, i / kColumns, i % kColumns)));
  return all;
}
Matrices timedOnes(uint32_t rank, uint64_t rows) {
  Matrices all(rows);
  for (std::vector<uint16_t> *matrix : {&all.left, &all.right})
    for (uint64_t i = 0; i < matrix->size(); ++i)
      (*matrix)[i] = bfloat16Of(static_cast<float>(mixed(i, rank) % 2001) / 1000.f - 1.f);
  return all;
}

class Gemm {
public:
  Gemm(Rank &rank, std::unique_ptr<Cublas> library, uint64_t rows)
      : rank(rank), cublas(std::move(library)), rows(rows), compared(comparedOnes(rank.rank, rows)),
        dense(timedOnes(rank.rank, rows)) {
    check(cudaMalloc(&left, 2 * rows * kInner), "cudaMalloc");
    check(cudaMalloc(&right, 2 * kInner * kColumns), "cudaMalloc");
    for (char **memory : {&own.product, &own.sum}) {
      void *made = nullptr;
      check(occlMemAlloc(rank.comm, 2 * rows * kColumns, &made), "occlMemAlloc");
      *memory = static_cast<char *>(made);
    }
    for (char **memory : {&theirs.product, &theirs.sum})
      if (rank.nccl)
        *memory = static_cast<char *>(rank.nccl->allocate(2 * rows * kColumns, true));
  }

  static void printHead(const Rank &rank) {
    rank.print("\nProduct (M x 4096 x 8192, bfloat16) and its sum over all ranks, us" +
               (rank.nccl ? ", NCCL " + rank.nccl->version() : std::string(", no NCCL")) +
               "\n\n| M | partitioned | setting | occlStart in bands | occlCall | graph | NCCL | "
               "graph | in bands | product alone | sum alone | best NCCL / partitioned | limit | "
               "overlap | overlap of NCCL |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|"
               "---|---|\n");
  }

  void row(bool onlyChecks) {
    makeReference();
    isTimed = false;
    load(compared);
    measure();
    isTimed = !onlyChecks;
    if (isTimed) {
      load(dense);
      measure();
    }
    rank.print(cells());
  }

private:
  using Enqueue = std::function<void()>;
  struct Results {
    char *product = nullptr, *sum = nullptr;
  };
  /// Microseconds; 0: not measured.
  struct Measured {
    double partitioned = 0, started = 0, call = 0, callGraph = 0, nccl = 0, ncclGraph = 0,
           ncclBands = 0, product = 0, sum = 0;
    std::string setting;
  };

  void load(const Matrices &matrices) {
    check(cudaMemcpy(left, matrices.left.data(), 2 * rows * kInner, cudaMemcpyDefault),
          "cudaMemcpy");
    check(cudaMemcpy(right, matrices.right.data(), 2 * matrices.right.size(), cudaMemcpyDefault),
          "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  void measure() {
    found = {};
    partitioned();
    found.call = inStream(own, [&] { callInTurn(); });
    found.callGraph = inGraph(own, [&] { callInTurn(); });
    if (rank.nccl) {
      found.nccl = inStream(theirs, [&] { ncclInBands(1, 0); });
      found.ncclGraph = inGraph(theirs, [&] { ncclInBands(1, 0); });
      std::vector<double> all;
      for (const uint32_t bands : {2, 4, 8})
        for (const uint32_t limit : {0u, rank.multiprocessors - kLeft})
          all.push_back(inGraph(theirs, [&] { ncclInBands(bands, limit); }));
      found.ncclBands = best(all);
    }
    if (!isTimed)
      return;
    found.product = rank.inStream([&] { multiply(own, 0, rows, 0, rank.stream); });
    found.sum = rank.inStream([&] { sumByOccl(); });
  }

  /// The fastest setting of the partitioned form, each compared; and of occlStart.
  void partitioned() {
    std::vector<double> started;
    uint32_t number = 0; // of a setting
    for (const uint32_t bands : {2, 4, 8})
      for (const uint32_t limit : {0u, rank.multiprocessors - kLeft}) {
        loadKernels(bands, limit);
        for (const uint64_t rounds : {uint64_t{0}, uint64_t{bands}}) {
          if (!rank.begin(number++))
            continue;
          const BandsShape shape = {rows, kColumns, bands, occlBfloat16, rounds};
          const auto product = rank.madeUnlessRefused<ProductInBands>(
              std::to_string(rounds) + " rounds", shape, own.product, own.sum,
              [&, limit](uint64_t first, uint64_t number, cudaStream_t stream) {
                multiply(own, first, number, limit, stream);
              });
          if (!product)
            continue;
          const std::string setting = std::to_string(bands) + " bands, " +
                                      (rounds ? std::to_string(rounds) + " rounds" : "as chosen") +
                                      (limit ? ", leaves some" : "");
          const double time =
              named(setting, [&] { return inStream(own, [&] { product->enqueue(rank.stream); }); });
          if (time == 0 || (found.partitioned != 0 && found.partitioned <= time))
            continue;
          found.partitioned = time;
          found.setting = setting;
        }
        rank.together.meet();
        rank.endSettings();
        if (bands <= 4) // more at a time than the communicator takes
          started.push_back(inStream(own, [&] { startInBands(bands, limit); }));
      }
    found.started = best(started);
  }

  std::string cells() const {
    const auto shown = [this](double time) { return isTimed ? cell(time) : " right |"; };
    const auto ofNccl = [&](double time) { return rank.nccl ? shown(time) : " - |"; };
    const double inTurn = best({found.call, found.callGraph, found.nccl, found.ncclGraph});
    const double longer = std::max(found.product, found.sum);
    const double nccl = best({found.nccl, found.ncclGraph, found.ncclBands});
    const auto overlap = [&](double time) { return ratio(inTurn - time, inTurn - longer); };
    return "| " + std::to_string(rows) + " |" + shown(found.partitioned) + " " + found.setting +
           " |" + shown(found.started) + shown(found.call) + shown(found.callGraph) +
           ofNccl(found.nccl) + ofNccl(found.ncclGraph) + ofNccl(found.ncclBands) +
           cell(found.product) + cell(found.sum) + ratio(nccl, found.partitioned) +
           ratio(nccl, longer) + overlap(found.partitioned) + overlap(found.ncclBands) + "\n";
  }

  void multiply(const Results &to, uint64_t first, uint64_t number, uint32_t limit,
                cudaStream_t stream) {
    cublas->multiply(left + 2 * first * kInner, right, to.product + 2 * first * kColumns, number,
                     kColumns, kInner, limit, stream);
  }
  /// Those that cuBLAS chooses for such bands: none may be launched for the first time while an
  /// epoch is open, as it would wait for the library's kernel.
  void loadKernels(uint32_t bands, uint32_t limit) {
    for (uint32_t band = 0; band < bands; ++band)
      multiply(own, band * (rows / bands), rows / bands, limit, rank.stream);
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
  }
  void sumByOccl() {
    check(occlAllReduce(own.product, own.sum, rows * kColumns, occlBfloat16, occlSum, rank.comm,
                        rank.stream),
          "occlAllReduce");
  }
  void callInTurn() {
    multiply(own, 0, rows, 0, rank.stream);
    sumByOccl();
  }
  /// The library's kernel sums a band while the next one is computed.
  void startInBands(uint32_t bands, uint32_t limit) {
    const uint64_t each = rows / bands, bytes = 2 * each * kColumns;
    std::vector<occlRequest_t> requests(bands);
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.dataType = occlBfloat16;
    call.count = each * kColumns;
    call.after = &rank.stream;
    for (uint32_t band = 0; band < bands; ++band) {
      multiply(own, band * each, each, limit, rank.stream);
      call.id = rows + bands * 64 + band;
      call.sendBuffer = own.product + band * bytes;
      call.recvBuffer = own.sum + band * bytes;
      check(occlStart(rank.comm, &call, nullptr, nullptr, &requests[band]), "occlStart");
    }
    for (const occlRequest_t request : requests)
      check(occlStreamWait(rank.comm, request, rank.stream), "occlStreamWait");
  }
  void ncclInBands(uint32_t bands, uint32_t limit) {
    const uint64_t each = rows / bands, bytes = 2 * each * kColumns;
    for (uint32_t band = 0; band < bands; ++band) {
      multiply(theirs, band * each, each, limit, rank.stream);
      if (bands > 1)
        beside.follow(rank.stream);
      rank.nccl->enqueue(Kind::AllReduce, theirs.product + band * bytes, theirs.sum + band * bytes,
                         each * kColumns, bands > 1 ? beside.stream : rank.stream, Type::Bfloat16);
    }
    if (bands > 1)
      beside.precede(rank.stream);
  }

  /// Compared where matrices are exact, else timed.
  double inStream(const Results &results, const Enqueue &enqueue) {
    if (isTimed)
      return rank.inStream(enqueue);
    compare(results, enqueue);
    return 0;
  }
  double inGraph(const Results &results, const Enqueue &enqueue) {
    if (isTimed)
      return rank.inGraph(enqueue);
    enqueue(); // makes what is made once
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    const Graph one(rank.stream, enqueue);
    compare(results, [&] { one.launch(rank.stream); });
    return 0;
  }

  void makeReference() {
    reference.clear();
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t column = 0; column < kColumns; column += kSampled) {
        int sum = 0;
        for (uint32_t r = 0; r < rank.size; ++r)
          for (uint64_t j = 0; j < kInRow; ++j)
            sum += leftOf(r, row, j) * rightOf(r, placeOf(r, row, j), column);
        reference.push_back(sum);
      }
  }
  void compare(const Results &results, const Enqueue &enqueue) {
    std::vector<uint16_t> host(rows * kColumns);
    for (char *memory : {results.product, results.sum})
      check(cudaMemsetAsync(memory, 0x7f, 2 * host.size(), rank.stream), "cudaMemsetAsync");
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    rank.together.meet();
    enqueue();
    check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
    check(cudaMemcpy(host.data(), results.sum, 2 * host.size(), cudaMemcpyDefault), "cudaMemcpy");
    auto expected = reference.begin();
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t column = 0; column < kColumns; column += kSampled, ++expected)
        if (const float sum = std::bit_cast<float>(uint32_t{host[row * kColumns + column]} << 16);
            sum != static_cast<float>(*expected))
          throw std::runtime_error("row " + std::to_string(row) + ", column " +
                                   std::to_string(column) + " is " + std::to_string(sum) +
                                   ", not " + std::to_string(*expected));
  }

  Rank &rank;
  const std::unique_ptr<Cublas> cublas;
  const uint64_t rows;
  const Matrices compared, dense;
  bool isTimed = false;
  char *left = nullptr, *right = nullptr;
  Results own, theirs;
  std::vector<int> reference;
  Measured found;
  Beside beside;
};

} // namespace

int main(int argc, char **argv) {
  return runRanks(argc, argv, sizesFrom(kSmallest, kLargest, 2), [](Rank &rank, const Run &run) {
    std::unique_ptr<Cublas> cublas = Cublas::open();
    if (!cublas)
      return rank.print(run.isFirst ? "\nno libcublas.so.13 or .12: no products\n" : "");
    if (run.isFirst)
      Gemm::printHead(rank);
    // Ranks that share a device wait for its slices of time.
    if (rank.ranksOfDevice == 1 || run.size == kSmallest)
      Gemm(rank, std::move(cublas), run.size).row(run.onlyChecks);
  });
}
