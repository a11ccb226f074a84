#include "tools/occl-run/comm_scoreboard.h"

#include "runtime/api/occl_collectives.h"

#include <fmt/core.h>

namespace occl::run {

bool CommScoreboard::barrier() {
  uint32_t here = 1;
  const occlResult_t result = occlAllReduce(&here, &here, 1, occlUint32, occlSum, comm, nullptr);
  if (result != occlSuccess)
    fmt::print(stderr, "occl-run: meeting the other ranks: {}: {}\n", occlGetErrorString(result),
               occlGetLastError());
  return result == occlSuccess;
}

occlResult_t CommScoreboard::combine() {
  const occlResult_t result = occlAllReduce(seconds.data(), seconds.data(), seconds.size(),
                                            occlFloat64, occlMax, comm, nullptr);
  if (result != occlSuccess)
    return result;
  return occlAllReduce(&numWrong, &numWrong, 1, occlUint64, occlSum, comm, nullptr);
}

} // namespace occl::run
