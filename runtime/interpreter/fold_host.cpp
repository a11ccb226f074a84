#include "runtime/interpreter/fold_host.h"

#include "runtime/interpreter/fold_variants.h"

#include <algorithm>
#include <cstring>

namespace occl::interpreter {

const FoldTable &foldTable() {
#ifdef __x86_64__
  static const FoldTable table = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")
                                     ? avx2::makeFoldTable()
                                     : baseline::makeFoldTable();
#else
  static const FoldTable table = baseline::makeFoldTable();
#endif
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

} // namespace occl::interpreter
