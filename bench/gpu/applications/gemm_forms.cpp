#include "bench/gpu/applications/gemm_forms.h"

#include "examples/partitioned/check.h"
#include "examples/partitioned/products.h"
#include "runtime/api/occl_collectives.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace occl::bench {

using examples::check;
using examples::ProductShape;

namespace {

/// Of exact matrices every so many columns are compared; of dense ones so many rows, and columns.
constexpr uint64_t kColumnsApart = 31, kDenseRows = 16, kDenseColumns = 12;
/// Of bfloat16, which has 8 bits: half a unit in the last place.
constexpr double kRounding = 1. / 256;

occlDataType_t occlTypeOf(Type type) { return type == Type::Float32 ? occlFloat32 : occlBfloat16; }

template <class Made>
GemmForms::Enqueue enqueueing(std::shared_ptr<Made> made, cudaStream_t stream) {
  return [made = std::move(made), stream] { made->enqueue(stream); };
}

} // namespace

GemmForms::GemmForms(Rank &rank, Cublas &cublas, const Sizes &sizes, Type type)
    : rank(rank), cublas(cublas), sizes(sizes), type(type) {
  check(cudaMalloc(&left, leftBytes(sizes.rows)), "cudaMalloc");
  check(cudaMalloc(&right, productBytes(sizes.inner)), "cudaMalloc");
  const uint64_t gathered = leftBytes(sizes.rows), product = productBytes(sizes.rows);
  check(cudaMallocHost(&host, product), "cudaMallocHost");
  const auto allocated = [&](uint64_t bytes) {
    void *made = nullptr;
    check(occlMemAlloc(rank.comm, bytes, &made), "occlMemAlloc");
    return static_cast<char *>(made);
  };
  own = {allocated(gathered), nullptr, allocated(product), allocated(product)};
  if (!rank.nccl)
    return;
  const auto registered = [&](uint64_t bytes) {
    return static_cast<char *>(rank.nccl->allocate(bytes, true));
  };
  theirs = {registered(gathered), registered(gathered), registered(product), registered(product)};
}

/// NCCL's memory is kept until the process ends.
GemmForms::~GemmForms() {
  for (char *memory : {own.gathered, own.product, own.sum})
    occlMemFree(rank.comm, memory);
  cudaFree(left);
  cudaFree(right);
  cudaFreeHost(host);
}

void GemmForms::load(Values these) {
  values = these;
  const std::vector<char> ofLeft = leftMatrix(sizes, values, rank.rank, type),
                          ofRight = rightMatrix(sizes, values, rank.rank, type);
  check(cudaMemcpy(left, ofLeft.data(), ofLeft.size(), cudaMemcpyDefault), "cudaMemcpy");
  check(cudaMemcpy(right, ofRight.data(), ofRight.size(), cudaMemcpyDefault), "cudaMemcpy");
  spoil(Whose::Own); // and puts the own blocks in place
  if (rank.nccl)
    spoil(Whose::Theirs);
  for (const auto application :
       {Application::AllGather, Application::ReduceScatter, Application::AllReduce})
    references[static_cast<size_t>(application)] = expected(application);
}

void GemmForms::multiply(const void *from, void *to, uint64_t rows, bool adds, uint32_t limit) {
  Cublas::Product product = {from, right, to, rows, sizes.inner, sizes.columns};
  product.type = type;
  product.adds = adds;
  product.multiprocessors = limit;
  cublas.multiply(product, rank.stream);
}

// --- as it is written today ---

GemmForms::Enqueue GemmForms::product(Application application, Whose whose, uint32_t parts) {
  const char *const from = application == Application::AllGather ? of(whose).gathered : left;
  const uint64_t each = sizes.rows / parts;
  return [=, this] {
    for (uint32_t part = 0; part < parts; ++part)
      multiply(from + leftBytes(part * each), of(whose).product + productBytes(part * each), each,
               false, 0);
  };
}

/// By one call of OCCL, or of NCCL. The all-gather is in place.
GemmForms::Enqueue GemmForms::collective(Application application, Whose whose) {
  static constexpr Kind kKinds[] = {Kind::AllGather, Kind::ReduceScatter, Kind::AllReduce};
  static constexpr occlKind_t kOccl[] = {occlKindAllGather, occlKindReduceScatter,
                                         occlKindAllReduce};
  const auto which = static_cast<size_t>(application);
  const Buffers &buffers = of(whose);
  const bool gathers = application == Application::AllGather,
             isPart = application != Application::AllReduce;
  const uint64_t length = gathers ? sizes.inner : sizes.columns;
  const uint64_t count = (isPart ? blockRows() : sizes.rows) * length;
  const char *const from =
      gathers ? buffers.gathered + rank.rank * count * sizeOf(type) : buffers.product;
  char *const to = gathers ? buffers.gathered : buffers.sum;
  if (whose == Whose::Theirs)
    return [=, this] { rank.nccl->enqueue(kKinds[which], from, to, count, rank.stream, type); };
  return [=, this] {
    check(occlCallOfKind(kOccl[which], from, to, count, occlTypeOf(type), occlSum, 0, rank.comm,
                         rank.stream),
          "occlCall");
  };
}

GemmForms::Enqueue GemmForms::inTurn(Application application, Whose whose, uint32_t parts) {
  const Enqueue multiplies = product(application, whose, parts),
                moves = collective(application, whose);
  return [=] {
    if (application == Application::AllGather)
      moves();
    multiplies();
    if (application != Application::AllGather)
      moves();
  };
}

GemmForms::Enqueue GemmForms::ncclInBands(Application application, BandsSetting setting) {
  return [=, this] {
    if (application == Application::AllGather)
      gatherBands(setting);
    else if (application == Application::ReduceScatter)
      scatterBands(setting);
    else
      reduceBands(setting);
  };
}

/// A band is that of all ranks' blocks: it is gathered while the one before is multiplied.
void GemmForms::gatherBands(BandsSetting setting) {
  const uint64_t each = blockRows() / setting.bands;
  beside.follow(rank.stream);
  for (uint32_t band = 0; band < setting.bands; ++band) {
    char *const gathered = theirs.bands + leftBytes(band * each * rank.size);
    rank.nccl->enqueue(Kind::AllGather,
                       theirs.gathered + leftBytes(rank.rank * blockRows() + band * each), gathered,
                       each * sizes.inner, beside.stream, type);
    beside.precede(rank.stream);
    Cublas::Product product = {gathered, right,       theirs.product + productBytes(band * each),
                               each,     sizes.inner, sizes.columns};
    product.type = type;
    product.multiprocessors = limitOf(setting.left);
    product.batch = rank.size;
    product.leftApart = each * sizes.inner;
    product.productApart = blockRows() * sizes.columns;
    cublas.multiply(product, rank.stream);
  }
}

/// Likewise: it is computed for all blocks, and scattered while the next one is.
void GemmForms::scatterBands(BandsSetting setting) {
  const uint64_t each = blockRows() / setting.bands;
  for (uint32_t band = 0; band < setting.bands; ++band) {
    char *const bandOfAll = theirs.product + productBytes(band * each * rank.size);
    Cublas::Product product = {
        left + leftBytes(band * each), right, bandOfAll, each, sizes.inner, sizes.columns};
    product.type = type;
    product.multiprocessors = limitOf(setting.left);
    product.batch = rank.size;
    product.leftApart = blockRows() * sizes.inner;
    product.productApart = each * sizes.columns;
    cublas.multiply(product, rank.stream);
    beside.follow(rank.stream);
    rank.nccl->enqueue(Kind::ReduceScatter, bandOfAll, theirs.sum + productBytes(band * each),
                       each * sizes.columns, beside.stream, type);
  }
  beside.precede(rank.stream);
}

void GemmForms::reduceBands(BandsSetting setting) {
  const uint64_t each = sizes.rows / setting.bands;
  for (uint32_t band = 0; band < setting.bands; ++band) {
    const uint64_t at = productBytes(band * each);
    multiply(left + leftBytes(band * each), theirs.product + at, each, false,
             limitOf(setting.left));
    beside.follow(rank.stream);
    rank.nccl->enqueue(Kind::AllReduce, theirs.product + at, theirs.sum + at, each * sizes.columns,
                       beside.stream, type);
  }
  beside.precede(rank.stream);
}

// --- partitioned ---

GemmForms::Enqueue GemmForms::partitioned(Application application, BandsSetting setting) {
  const ProductShape shape = {sizes.rows,       sizes.inner,      sizes.columns,
                              setting.bands,    occlTypeOf(type), setting.senders,
                              setting.left > 0, setting.hostWaits};
  const examples::Multiply multiplies =
      [this, limit = limitOf(setting.left)](const void *from, void *to, uint64_t rows, bool adds,
                                            cudaStream_t) {
        multiply(from, to, rows, adds, limit);
      };
  const auto make = [&]<class Made>(Made *, auto... buffers) {
    return enqueueing(std::make_shared<Made>(rank.comm, shape, buffers..., multiplies),
                      rank.stream);
  };
  if (application == Application::AllGather)
    return make(static_cast<examples::AllGatherProduct *>(nullptr), own.gathered, own.product);
  if (application == Application::ReduceScatter)
    return make(static_cast<examples::ProductReduceScatter *>(nullptr), left, own.sum);
  return make(static_cast<examples::ProductAllReduce *>(nullptr), left, own.sum);
}

// --- comparing ---

uint64_t GemmForms::rowsOfOutput(Application application) const {
  return application == Application::ReduceScatter ? blockRows() : sizes.rows;
}

const char *GemmForms::outputOf(Application application, Whose whose) const {
  return application == Application::AllGather ? of(whose).product : of(whose).sum;
}

/// All but the own block of what is gathered.
void GemmForms::spoil(Whose whose) {
  const Buffers &buffers = of(whose);
  const uint64_t gathered = leftBytes(sizes.rows), product = productBytes(sizes.rows);
  const auto set = [&](char *memory, uint64_t bytes) {
    if (memory)
      check(cudaMemsetAsync(memory, 0x7f, bytes, rank.stream), "cudaMemsetAsync");
  };
  set(buffers.gathered, gathered);
  set(buffers.bands, gathered);
  set(buffers.product, product);
  set(buffers.sum, product);
  const uint64_t block = leftBytes(blockRows()), at = rank.rank * block;
  check(cudaMemcpyAsync(buffers.gathered + at, left + at, block, cudaMemcpyDefault, rank.stream),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
}

/// What the host makes of row `row` of this rank's output. Each partial sum may be rounded.
GemmForms::Expected GemmForms::expectedAt(Application application, uint64_t row,
                                          uint64_t column) const {
  Expected found = {row, column, 0, 0};
  if (application == Application::AllGather) {
    const auto owner = static_cast<uint32_t>(row / blockRows());
    found.value = productAt(sizes, values, owner, rank.rank, row, column);
    found.tolerance = kRounding * std::abs(found.value);
  } else {
    const uint64_t ofAll =
        application == Application::ReduceScatter ? rank.rank * blockRows() + row : row;
    for (uint32_t r = 0; r < rank.size; ++r) {
      const double each = productAt(sizes, values, r, r, ofAll, column);
      found.value += each;
      found.tolerance += kRounding * rank.size * std::abs(each);
    }
  }
  found.tolerance = values == Values::Exact ? 0 : found.tolerance + 0.01;
  return found;
}

std::vector<GemmForms::Expected> GemmForms::expected(Application application) const {
  const bool isExact = values == Values::Exact;
  const uint64_t rows = rowsOfOutput(application);
  const uint64_t rowsApart = isExact ? 1 : std::max<uint64_t>(1, rows / kDenseRows),
                 columnsApart = isExact ? kColumnsApart : sizes.columns / kDenseColumns;
  std::vector<Expected> all;
  for (uint64_t row = 0; row < rows; row += rowsApart)
    for (uint64_t column = row % columnsApart; column < sizes.columns; column += columnsApart)
      all.push_back(expectedAt(application, row, column));
  return all;
}

void GemmForms::compare(Application application, Whose whose, const Enqueue &enqueue) {
  spoil(whose);
  rank.together.meet();
  enqueue();
  check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize");
  check(cudaMemcpy(host, outputOf(application, whose), productBytes(rowsOfOutput(application)),
                   cudaMemcpyDefault),
        "cudaMemcpy");
  for (const Expected &each : references[static_cast<size_t>(application)]) {
    const double found = double{elementOf(host, each.row * sizes.columns + each.column, type)};
    if (!(std::abs(found - each.value) <= each.tolerance))
      throw std::runtime_error("row " + std::to_string(each.row) + ", column " +
                               std::to_string(each.column) + " is " + std::to_string(found) +
                               ", not " + std::to_string(each.value));
  }
}

} // namespace occl::bench
