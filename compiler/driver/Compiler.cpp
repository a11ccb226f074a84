#include "compiler/driver/Compiler.h"

#include "compiler/dialect/Hints.h"
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/dialect/chunk/Chunk.h"
#include "compiler/dialect/inst/Inst.h"
#include "compiler/driver/Printing.h"
#include "compiler/driver/Weights.h"
#include "compiler/export/PlanExport.h"
#include "plan/transform/remote_orders.h"
#include "compiler/frontend/elaborate/TopologyReader.h"
#include "compiler/interchange/synthesis/SynthesisFrontend.h"
#include "mlir/Parser/Parser.h"
#include "support/parallel.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>

using namespace mlir;

namespace occl::driver {

Compiler::Compiler(CompileOptions options)
    : options(std::move(options)), context(MLIRContext::Threading::DISABLED) {
  // One thread: passes have threads of their own (support/parallel.h), with an order that does not
  // depend on them.
  context.loadDialect<chunk::ChunkDialect, inst::InstDialect>();
  context.printOpOnDiagnostic(false); // a program's op is all of its IR
  // MLIR's errors are printed like all others, in the format that was asked for.
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    hasWarned |= diagnostic.getSeverity() == DiagnosticSeverity::Warning;
    print(diagnostic, this->options.path, output());
  });
}

Compiler::~Compiler() = default;

Output Compiler::output() const {
  Output output(options.diagnosticFormat);
  output.stream = options.messages;
  output.overlay = options.overlay;
  return output;
}

bool Compiler::load() {
  // By the name's end, as users expect it.
  llvm::StringRef path = options.path;
  bool isIR = path.ends_with(".mlir") || path.ends_with(".mlirbc");
  bool isSynthesis = path.ends_with(".json");
  if (!(isIR ? loadIR() : isSynthesis ? loadSynthesis() : loadSource()))
    return false;
  if (options.directInTopology && !machine) {
    printError("groups of ranks by topology need one: give --topology [E025]", output());
    return false;
  }
  // Ranks of a node that have links to each other.
  if (options.directInTopology)
    options.pipeline.directGroups = machine->directGroups();
  return applyOptions();
}

bool Compiler::loadSynthesis() {
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  ir = interchange::synthesis::compileFileToChunks(context, sources, options.path, diagnostics);
  print(diagnostics, sources, output());
  return ir && !diagnostics.hasErrors();
}

bool Compiler::loadSource() {
  // Source, topology and options as the frontend wants them.
  frontend::SourceManager sources(options.overlay);
  frontend::DiagnosticEngine diagnostics(sources);
  frontend::FrontendOptions settings;
  settings.defines = options.defines;
  settings.importPaths = options.importPaths;
  settings.algorithm = options.algorithm;
  if (options.maxOps)
    settings.maxOps = *options.maxOps;
  settings.bytes = options.bytes;
  settings.version = options.version;
  std::optional<frontend::DeclaredTopology> declared;
  // The topology first: the program may ask it questions.
  if (!options.topology.empty())
    declared = frontend::readTopology(sources, options.topology, options.defines,
                                      options.importPaths, diagnostics);
  if (declared) {
    settings.topology = &*declared;
    machine = declared->topology;
  }
  if (!diagnostics.hasErrors())
    ir = frontend::compileFileToChunks(context, sources, options.path, settings, diagnostics,
                                       &loadedVersion);
  // The first version has shown the warnings of all.
  if (diagnostics.hasErrors() || options.version == 0)
    print(diagnostics, sources, output());
  // Warnings are printed in any case, and fail the compilation only if that was asked for.
  return ir && !diagnostics.hasErrors() &&
         (diagnostics.numWarnings() == 0 || !options.warningsAreErrors);
}

std::optional<topology::Topology> loadTopology(const std::string &path,
                                               const std::vector<std::string> &defines,
                                               DiagnosticFormat format) {
  // A topology by itself, for predictions: without a program that could take some of the
  // definitions, each must be one of its parameters.
  frontend::SourceManager sources;
  frontend::DiagnosticEngine diagnostics(sources);
  std::optional<frontend::DeclaredTopology> declared =
      frontend::readTopology(sources, path, defines, {}, diagnostics);
  for (const std::string &define : defines) {
    std::string name = define.substr(0, define.find('='));
    if (declared && !declared->hasParameter(name))
      diagnostics
          .error(frontend::DiagnosticCode::BadDefine, {},
                 "the topology '" + declared->topology.name + "' has no parameter '" + name + "'")
          .note(declared->place, "declared here");
  }
  print(diagnostics, sources, format);
  if (diagnostics.hasErrors())
    return std::nullopt;
  return std::move(declared->topology);
}

bool Compiler::loadIR() {
  // IR has no source for -D: definitions are the topology's.
  if (!options.topology.empty() &&
      !(machine = loadTopology(options.topology, options.defines, options.diagnosticFormat)))
    return false;
  ir = parseSourceFile<ModuleOp>(options.path, &context);
  if (!ir)
    return false;
  // One program in a module, of either dialect: a chain of occl-opt ends in one.
  auto isProgram = [](Operation &op) { return isa<chunk::ProgramOp, inst::ProgramOp>(op); };
  Block &body = *ir->getBody();
  if (llvm::hasSingleElement(body) && isProgram(body.front()))
    return true;
  ir->emitError("expected a module of one chunk.program or inst.program");
  return false;
}

/// FNV-1a of a text, from a state on.
static uint64_t mixHash(uint64_t state, llvm::StringRef text) {
  for (char c : text)
    state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return state;
}

/// Leaves the program the alias modes asked for; reports one that it does not have.
static bool narrowModes(chunk::ProgramOp program, AliasModes modes) {
  // A mode that the program does not claim cannot be asked for: nothing has been checked in it.
  bool wantsInPlace = modes == AliasModes::InPlace;
  if (modes == AliasModes::All)
    return true;
  if (wantsInPlace ? !program.getInPlace() : !program.getOutOfPlace()) {
    program.emitError() << "'" << program.getAlgorithm() << "' does not work "
                        << (wantsInPlace ? "in place" : "out of place")
                        << ", which --modes asks for [E021]";
    return false;
  }
  program.setInPlace(wantsInPlace);
  program.setOutOfPlace(!wantsInPlace);
  return true;
}

static std::string describeSizes(uint64_t smallest, uint64_t largest) {
  return largest == ~uint64_t{0} ? llvm::formatv("{0} bytes and more", smallest).str()
                                 : llvm::formatv("{0} to {1} bytes", smallest, largest).str();
}

/// Leaves the program the sizes asked for; reports those that it, or this version of it, is not
/// for.
static bool narrowSizes(chunk::ProgramOp program, const CompileOptions &options) {
  // Narrower is always possible; wider is not, as the version was written for these sizes.
  const uint64_t smallest = program.getMinBytes(), largest = program.getMaxBytes();
  const uint64_t low = options.minBytes.value_or(smallest);
  const uint64_t high = options.maxBytes.value_or(largest);
  if (low > high) {
    program.emitError() << "no size is at least " << low << " and at most " << high
                        << " bytes, as --min-bytes and --max-bytes ask [E025]";
    return false;
  }
  if (low < smallest || high > largest) {
    program.emitError() << "this version of '" << program.getAlgorithm() << "' is for "
                        << describeSizes(smallest, largest) << ", not for "
                        << describeSizes(low, high)
                        << ", as --min-bytes and --max-bytes ask [E025]";
    return false;
  }
  program.setMinBytes(low);
  program.setMaxBytes(high);
  return true;
}

/// Puts options into the program's header, and their hash with that of the source.
bool Compiler::applyOptions() {
  // Of a program of instructions everything is decided already.
  auto program = dyn_cast<chunk::ProgramOp>(ir->getBody()->front());
  if (!program)
    return true;
  if (options.depth)
    program.setDepth(*options.depth);
  if (!options.protocol.empty())
    program.setProtocol(options.protocol);
  if (!narrowModes(program, options.modes) || !narrowSizes(program, options))
    return false;
  if (machine)
    // The machine's speeds, as far as passes use them.
    options.pipeline.weights = weightsOf(program, *machine);
  // The plan's hash: of the source, of the options that decide what the plan is, and of the header.
  // Plans with the same hash are the same plan.
  uint64_t hash = mixHash(0xcbf29ce484222325, program.getSourceHash());
  hash = mixHash(hash, hashedText(options.pipeline));
  hash = mixHash(hash,
                 llvm::formatv("{0} {1} {2} {3} {4} {5}", program.getDepth(), program.getMinBytes(),
                               program.getMaxBytes(), program.getProtocol(), program.getInPlace(),
                               program.getOutOfPlace())
                     .str());
  program.setSourceHash(llvm::formatv("{0:x-16}", hash).str());
  // The options change the header only; to check all operations again would take time.
  return succeeded(dialect::verifyHeader(program, dialect::headerOf(program))) &&
         succeeded(dialect::verifyHints(program, program.getHints()));
}

bool Compiler::lower() {
  if (isa<inst::ProgramOp>(ir->getBody()->front()))
    return true;
  return succeeded(runPipeline(*ir, options.pipeline)) && !(hasWarned && options.warningsAreErrors);
}

size_t Compiler::numOps() {
  auto program = dyn_cast<chunk::ProgramOp>(ir->getBody()->front());
  return program ? program.getOperations().ops.size() : 0;
}

std::optional<std::string> Compiler::pipeline() {
  if (!isa<chunk::ProgramOp>(ir->getBody()->front()))
    return std::nullopt;
  return pipelineText(options.pipeline);
}

ModuleOp Compiler::module() { return *ir; }

/// Names source files as seen from the folder of the one that was compiled, so that a plan does not
/// depend on where they lie.
static void nameFilesFromMainFile(Location program, plan::Plan &plan) {
  // Only the frontend gives a program the name of its main file.
  auto mainFile = dyn_cast<NameLoc>(program);
  if (!mainFile)
    return;
  std::filesystem::path folder = std::filesystem::path(mainFile.getName().str()).parent_path();
  for (std::string &file : plan.files)
    if (std::filesystem::path name = std::filesystem::path(file).lexically_relative(folder);
        !name.empty())
      file = name.string();
}

std::optional<plan::Plan>
Compiler::exportVerifiedPlan(const std::function<void(const plan::Plan &)> &meanwhile) {
  auto program = cast<inst::ProgramOp>(ir->getBody()->front());
  // Export, then the rest works on the plan alone.
  FailureOr<plan::Plan> plan = exporter::exportPlan(program);
  if (failed(plan))
    return std::nullopt;
  // After the export, since it looks at paths through other ranks, which a plan has and a rank's IR
  // has not.
  if (options.pipeline.orderThroughRanks)
    plan::leaveOutRemoteDependencies(*plan);
  // The names as they were: messages of a failed proof use them.
  std::vector<std::string> files = plan->files;
  nameFilesFromMainFile(program.getLoc(), *plan);
  ir = nullptr; // the proofs take memory, too
  // Proving and, for example, writing take about as long, so they run side by side. The caller
  // throws the file away if the proof fails.
  support::parallelFor(meanwhile ? 2 : 1, plan->instructions.size(), [&](size_t i) {
    if (i == 0)
      verified = plan::verifyPlan(*plan);
    else
      meanwhile(*plan);
  });
  if (!verified) {
    plan->files = std::move(files); // as they are called where people look for them
    verified = plan::verifyPlan(*plan);
    print(*plan, verified, options.path, output());
    return std::nullopt;
  }
  return std::move(*plan);
}

} // namespace occl::driver
