// Chooses the loops of folds for this processor.
#include "runtime/exec/reduce/fold_host.h"

#include "runtime/exec/reduce/fold_variants.h"

#include <algorithm>
#include <cstring>

namespace occl::interpreter {

namespace {

/// What is folded as it is stored is bound by memory, and vectors of 64 bytes gain nothing there.
[[maybe_unused]] FoldTable withSmallFloatsOf(const FoldTable &wide, FoldTable table) {
  for (DataType type :
       {DataType::Float16, DataType::Bfloat16, DataType::Float8E4m3, DataType::Float8E5m2}) {
    const auto index = static_cast<unsigned>(type);
    std::ranges::copy(wide.functions[index], table.functions[index]);
    table.multiply[index] = wide.multiply[index];
  }
  return table;
}

} // namespace

const FoldTable &foldTable() {
  static const FoldTable table = [] {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) {
      // AVX-512 serves the small floats, and all other types the 32-byte vectors of AVX2.
      const bool hasAvx512 =
          __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
      return hasAvx512 ? withSmallFloatsOf(avx512::makeFoldTable(), avx2::makeFoldTable())
                       : avx2::makeFoldTable();
    }
#endif
    return baseline::makeFoldTable();
  }();
  return table;
}

void copyToAll(char *const *pointers, unsigned numDestinations, uint64_t bytes) {
  // With several destinations the source is read from memory once and from the cache afterwards.
  constexpr uint64_t kBlockBytes = 16 << 10;
  const char *source = pointers[0];
  uint64_t step = numDestinations == 1 ? bytes : kBlockBytes;
  for (uint64_t begin = 0; begin < bytes; begin += step)
    for (unsigned d = 1; d <= numDestinations; ++d)
      if (pointers[d] != source)
        std::memcpy(pointers[d] + begin, source + begin, std::min(step, bytes - begin));
}

void scaleElements(DataType type, const Scale &scale, char *to, const char *from,
                   uint64_t elements) {
  const auto index = static_cast<unsigned>(type);
  if (scale.factor)
    return foldTable().multiply[index](to, from, elements, scale.factor);
  // Without a factor the sum of one source is divided.
  char *pointers[] = {const_cast<char *>(from), to};
  foldTable().functions[index][static_cast<unsigned>(ReduceOp::Sum)](pointers, 1, 1, elements,
                                                                     scale.divisor);
}

} // namespace occl::interpreter
