// Any bytes as an MSCCL XML file: it must be refused with a reason, or become a plan that is
// proved.
#include "compiler/interchange/msccl/MscclImport.h"
#include "plan/verify/verifier.h"

#include <cstddef>
#include <cstdlib>

using namespace occl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  std::vector<interchange::Warning> warnings;
  frontend::FileId file =
      sources.addText("fuzz.xml", std::string(reinterpret_cast<const char *>(data), size));
  std::optional<plan::Plan> plan =
      interchange::msccl::importAlgorithm(sources, file, {}, diagnostics, warnings);
  diagnostics.render();
  if (plan.has_value() == diagnostics.hasErrors() || (plan && !plan::verifyPlan(*plan)))
    std::abort();
  return 0;
}
