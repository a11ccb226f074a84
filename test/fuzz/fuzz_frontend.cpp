// Any text as a .coll file: it must end soon, with errors or with a program.
#include "compiler/frontend/elaborate/Testing.h"

#include <cstddef>

using namespace occl::frontend;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  testing::Compilation compilation;
  FileId file = compilation.sources.addText(
      "fuzz.coll", std::string(reinterpret_cast<const char *>(data), size));
  compilation.program = loadProgram(compilation.sources, file, {}, compilation.diagnostics);
  resolve(compilation.program, compilation.sources, compilation.diagnostics);
  if (!compilation.diagnostics.hasErrors())
    for (const AlgorithmDecl &algorithm : compilation.program.main().algorithms) {
      ElaborationOptions options;
      options.maxOps = 1000;
      elaborate(compilation.program, algorithm, options, compilation.sources, compilation.sink,
                compilation.diagnostics);
    }
  compilation.diagnostics.render();
  return 0;
}
