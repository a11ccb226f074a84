// Any text as an algorithm of SCCL or TACCL: it must be refused with a reason, or be emitted.
#include "compiler/frontend/elaborate/Testing.h"
#include "compiler/interchange/synthesis/Synthesis.h"

#include <cstddef>
#include <cstdlib>

using namespace occl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  frontend::testing::RecordingSink sink;
  frontend::FileId file =
      sources.addText("fuzz.json", std::string(reinterpret_cast<const char *>(data), size));
  auto algorithm = interchange::synthesis::parse(sources, file, diagnostics);
  bool isEmitted = algorithm && interchange::synthesis::emit(*algorithm, file, sink, diagnostics);
  diagnostics.render();
  if (isEmitted == diagnostics.hasErrors())
    std::abort();
  return 0;
}
