#include "examples/partitioned/bands.h"

#include "examples/partitioned/check.h"

#include <utility>

namespace occl::examples {

ProductInBands::ProductInBands(occlComm_t comm, const BandsShape &shape, const void *product,
                               void *sum, Multiply multiply)
    : shape(shape), multiply(std::move(multiply)) {
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.rounds = shape.rounds;
  check(occlPallReduceInit(product, shape.bands, sum, 1, shape.rows * shape.columns, shape.type,
                           occlSum, comm, &config, &part),
        "occlPallReduceInit");
}

void ProductInBands::enqueue(cudaStream_t stream) {
  const uint64_t each = shape.rows / shape.bands;
  check(occlPstartOn(part, stream), "occlPstartOn");
  for (uint32_t band = 0; band < shape.bands; ++band) {
    multiply(band * each, each, stream);
    check(occlPreadyOn(part, band, band, stream), "occlPreadyOn"); // once it is computed
  }
  check(occlPwaitOn(part, stream), "occlPwaitOn"); // what follows finds the sum
}

ProductInBands::~ProductInBands() { occlPfree(part); }

} // namespace occl::examples
