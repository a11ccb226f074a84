// The library behind occlc: from a file to a verified plan.
#pragma once

#include "compiler/driver/Pipeline.h"
#include "compiler/frontend/Frontend.h"
#include "compiler/topology/Topology.h"
#include "plan/model/plan.h"
#include "plan/verify/verifier.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::driver {

/// How errors and warnings are printed, to standard error: for people, as a JSON object a line
/// (docs/tools.md), or not at all.
enum class DiagnosticFormat : uint8_t { Text, Json, None };

/// Where what is printed goes, and where it takes texts from.
struct Output {
  DiagnosticFormat format = DiagnosticFormat::Text;
  llvm::raw_ostream *stream = nullptr;        // null: standard error
  const frontend::Overlay *overlay = nullptr; // in place of what is on disk; may be null

  Output(DiagnosticFormat format = DiagnosticFormat::Text) : format(format) {}
};

/// In which alias modes a plan is to work: all that the program claims, or one of them.
enum class AliasModes : uint8_t { All, InPlace, OutOfPlace };

struct CompileOptions {
  /// A .coll file; an algorithm of SCCL or TACCL (.json); or IR (.mlir, .mlirbc): a chunk.program,
  /// or an inst.program that is scheduled.
  std::string path;
  /// "name=value", one for each -D, and folders for imports. Of .coll files only.
  std::vector<std::string> defines;
  std::vector<std::string> importPaths;
  std::string algorithm; // may be empty if the file has one
  std::string topology;  // a file with a topology; may be empty
  std::optional<uint64_t> maxOps;
  /// Which version of the algorithm: the one for this size of a part, or else by number.
  std::optional<uint64_t> bytes;
  size_t version = 0;

  // What the plan says of itself, where it differs from the source.
  std::optional<uint32_t> depth;
  std::optional<uint64_t> minBytes, maxBytes;
  std::string protocol; // simple, ll or ll128; may be empty
  AliasModes modes = AliasModes::All;

  /// Sets pipeline.directGroups as the topology says.
  bool directInTopology = false;

  /// With a topology, its weights are set, too.
  PipelineOptions pipeline;
  DiagnosticFormat diagnosticFormat = DiagnosticFormat::Text;
  bool warningsAreErrors = false;

  /// For editors; both live longer. Where errors and warnings go, null: to standard error; and the
  /// texts that take the place of files.
  llvm::raw_ostream *messages = nullptr;
  const frontend::Overlay *overlay = nullptr;
};

/// One compilation. Errors have been printed, as the options say, when a function returns nothing.
/// Not thread-safe; instances are independent.
class Compiler {
public:
  explicit Compiler(CompileOptions options);
  ~Compiler();

  /// Reads the file and elaborates it; the module has one program.
  bool load();
  /// Runs the passes, unless the program is an inst.program already. Expects load() to have
  /// succeeded.
  bool lower();
  /// The plan of the lowered program, if verifyPlan accepts it. Expects lower() to have succeeded;
  /// there is no module() afterwards.
  /// `meanwhile`, if there is one, is called with it once, perhaps on another thread while it is
  /// verified.
  std::optional<plan::Plan>
  exportVerifiedPlan(const std::function<void(const plan::Plan &)> &meanwhile = nullptr);

  /// Which of the algorithm's versions load() has taken; IR has one.
  const frontend::VersionInfo &version() const { return loadedVersion; }
  /// What verifyPlan found out about the plan.
  const plan::VerifyResult &verification() const { return verified; }
  /// Chunk operations of the loaded program; 0 of an inst.program. Expects load() to have succeeded
  /// and lower() not to have been called.
  size_t numOps();
  /// The passes that lower() runs, as text for `occl-opt --pass-pipeline`; nothing of an
  /// inst.program, for which it runs none. Expects load() to have succeeded and lower() not to have
  /// been called.
  std::optional<std::string> pipeline();
  /// The program as IR.
  mlir::ModuleOp module();
  /// Of the options' file, after load(); null if there is none.
  const topology::Topology *topology() const { return machine ? &*machine : nullptr; }

private:
  Output output() const;
  bool loadSource();
  bool loadSynthesis();
  bool loadIR();
  bool applyOptions();

  CompileOptions options;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> ir;
  frontend::VersionInfo loadedVersion;
  bool hasWarned = false; // of what passes found
  plan::VerifyResult verified;
  std::optional<topology::Topology> machine;
};

/// The topology in a file, all of `defines` being for it; nothing after an error, which was printed
/// to standard error.
std::optional<topology::Topology> loadTopology(const std::string &path,
                                               const std::vector<std::string> &defines,
                                               DiagnosticFormat format);

} // namespace occl::driver
