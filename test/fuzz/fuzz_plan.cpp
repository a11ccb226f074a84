// Any bytes as a plan file, JSON or CBOR: it must be refused or read; what is read must be refused
// or proved, and what is proved must be written and read again as the same plan.
#include "plan/io/reader.h"
#include "plan/io/writer.h"
#include "plan/model/hash.h"
#include "plan/verify/verifier.h"

#include <cstddef>
#include <cstdlib>
#include <sstream>

using namespace occl::plan;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  occl::support::Expected<Plan> plan = readPlan({reinterpret_cast<const char *>(data), size});
  if (!plan)
    return 0;
  VerifyResult result = verifyPlan(*plan);
  result.text();
  if (!result)
    return 0;
  for (Format format : {Format::Json, Format::Cbor}) {
    std::ostringstream out;
    if (!writePlan(*plan, format, out))
      std::abort();
    occl::support::Expected<Plan> again = readPlan(out.str());
    if (!again || hashPlan(*again) != hashPlan(*plan))
      std::abort();
  }
  return 0;
}
