// A product of matrices by cuBLAS and a collective, in the forms that are compared: in turn, by
// bands in two streams, and partitioned (examples/partitioned/products.h).
#pragma once

#include "bench/gpu/applications/cublas_library.h"
#include "bench/gpu/applications/matrices.h"
#include "bench/gpu/applications/rank.h"
#include "examples/partitioned/side_stream.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::bench {

/// Which collective: all-gather of the left matrix's rows before the product; reduce-scatter, or
/// all-reduce, of the products.
enum class Application : uint8_t { AllGather, ReduceScatter, AllReduce };

/// Bands of each rank's block of rows, and how many multiprocessors the products leave.
struct BandsSetting {
  uint32_t bands = 1, left = 0;
  uint32_t senders = 0; // as in examples::ProductShape
  bool hostWaits = false;
};

/// One rank's matrices, in memory of OCCL and of NCCL. Throws std::runtime_error.
class GemmForms {
public:
  using Enqueue = std::function<void()>; // into the rank's stream
  enum class Whose : uint8_t { Own, Theirs };

  /// Rows are a multiple of ranks times all bands that are asked for.
  GemmForms(Rank &rank, Cublas &cublas, const Sizes &sizes, Type type);
  ~GemmForms();
  GemmForms(const GemmForms &) = delete;
  GemmForms &operator=(const GemmForms &) = delete;

  void load(Values values);

  /// In so many parts, one after the other, which may take less than one.
  Enqueue product(Application application, Whose whose, uint32_t parts);
  Enqueue collective(Application application, Whose whose);
  Enqueue inTurn(Application application, Whose whose, uint32_t parts);
  Enqueue ncclInBands(Application application, BandsSetting setting);
  /// Makes its requests, which live as long as what is returned.
  Enqueue partitioned(Application application, BandsSetting setting);

  /// Runs it once with spoilt output, which is compared with what the host computes in float64: of
  /// exact matrices all rows, and the bits; of dense ones some, within what rounding allows.
  void compare(Application application, Whose whose, const Enqueue &enqueue);

private:
  struct Buffers {
    char *gathered = nullptr, *bands = nullptr, *product = nullptr, *sum = nullptr;
  };
  struct Expected {
    uint64_t row, column;
    double value, tolerance;
  };

  uint64_t blockRows() const { return sizes.rows / rank.size; }
  uint64_t leftBytes(uint64_t rows) const { return rows * sizes.inner * sizeOf(type); }
  uint64_t productBytes(uint64_t rows) const { return rows * sizes.columns * sizeOf(type); }
  const Buffers &of(Whose whose) const { return whose == Whose::Own ? own : theirs; }
  uint32_t limitOf(uint32_t left) const { return left == 0 ? 0 : rank.multiprocessors - left; }
  uint64_t rowsOfOutput(Application application) const;
  const char *outputOf(Application application, Whose whose) const;

  void multiply(const void *left, void *product, uint64_t rows, bool adds, uint32_t limit);
  void gatherBands(BandsSetting setting);
  void scatterBands(BandsSetting setting);
  void reduceBands(BandsSetting setting);
  void spoil(Whose whose);
  std::vector<Expected> expected(Application application) const;
  Expected expectedAt(Application application, uint64_t row, uint64_t column) const;

  Rank &rank;
  Cublas &cublas;
  const Sizes sizes;
  const Type type;
  Values values = Values::Exact;
  char *left = nullptr, *right = nullptr;
  char *host = nullptr; // pinned: a product
  Buffers own, theirs;
  std::vector<Expected> references[3]; // of each application, what is compared
  examples::SideStream beside;
};

} // namespace occl::bench
