// The interpreter of the language. Internal to elaboration: set-up and result (Elaborate.cpp,
// CollectiveInstance.cpp), versions and hints (Schedule.cpp), statements (ExecuteStatements.cpp),
// integers (EvaluateScalars.cpp), places and chunks (EvaluateChunks.cpp), lists
// (EvaluateLists.cpp), what chunks can be asked (EvaluateQueries.cpp), pre- and postcondition
// (Precondition.cpp, Postcondition.cpp).
#pragma once

#include "compiler/frontend/elaborate/Elaborate.h"
#include "compiler/frontend/memory/Layout.h"
#include "compiler/frontend/memory/Memory.h"
#include "compiler/frontend/memory/Trace.h"

#include <deque>
#include <functional>
#include <memory>
#include <span>

namespace occl::frontend {

/// What was read at some time: still there as long as no location of the place has a later version
/// than `stamp`.
struct Chunk {
  Place place;
  Version stamp = kUnwritten;
  ChunkHandle handle = 0;
};

struct List;
using ListRef = std::shared_ptr<const List>;

/// One of the three is in use, as the type of the list says; a list never changes.
struct List {
  std::vector<int64_t> ints;
  std::vector<ListRef> rows;
  std::vector<Chunk> chunks;

  size_t size() const { return ints.size() + rows.size() + chunks.size(); }
  bool operator==(const List &other) const;
};

/// The value of a variable. Of type Error before it has one, or if computing it failed: silent from
/// then on.
struct Value {
  Type type = Type::Error;
  int64_t scalar = 0; // of an int or bool; the number of a scratch
  Chunk chunk;        // of a chunk; of a location only its place
  ListRef list;       // of a list
};

/// A chunk to be reduced or grouped, and where it is written.
struct Operand {
  Chunk chunk;
  const Expr *expr = nullptr;
};

/// What a postcondition says of the chunks of one place.
struct RequirementInstance {
  const Requirement *requirement;
  Place output;
  std::span<const Place> contributions; // of as many chunks as output
};

class Elaborator {
public:
  Elaborator(const Program &program, const AlgorithmDecl &algorithm,
             const ElaborationOptions &options, SourceManager &sources, ChunkSink &sink,
             DiagnosticEngine &diagnostics);

  std::optional<ProgramInfo> run();
  /// Runs a topology's body instead; false after an error.
  bool runTopology(topology::Topology &result);

private:
  enum class Flow : uint8_t { Normal, Return, Stop };
  using Frame = size_t; // where its slots begin in `stack`
  using Body = std::function<Flow()>;

  std::optional<ProgramInfo> promise();

  // Set-up. Functions that can fail report, and return false.
  bool bindParameters();
  bool parseDefine(const std::string &define);
  bool parseValue(std::string_view text, Type type, Value &out);
  void recordParameter(const Param &param, const Value &value);
  bool bindParameter(size_t index);
  bool instantiateCollective();
  bool bindCollectiveArguments();
  bool executeBindings();
  bool sizeBuffers();
  bool checkSizes(const std::vector<uint32_t> &inputs, const std::vector<uint32_t> &outputs);
  bool evaluatePerRank(const RankItem &item, int64_t low, int64_t high, std::vector<int64_t> &out);
  bool chooseModes();
  /// The value of an integer parameter of the collective, or nullopt.
  std::optional<int64_t> collectiveParameter(std::string_view name) const;

  // Schedule
  bool chooseVersion();
  bool evaluateSizes(const VersionDecl &version);
  bool selectVersion();
  bool applyClauses(const ScheduleClauses &clauses);
  bool evaluateHint(const Expr *expr, int64_t low, int64_t high, const char *what, int32_t &out);
  /// The hints in force, changed as asked.
  bool evaluateHints(const HintArguments &arguments, Hints &out);
  void useHints(const Hints &next);
  Flow executeHints(const Stmt &statement);

  // Statements
  Flow execute(const std::vector<Stmt *> &statements);
  Flow execute(const Stmt &statement);
  Flow executeIf(const Stmt &statement);
  bool executeAssert(const Stmt &statement);
  void executeScratch(const Stmt &statement);
  /// Appends the number of slots on the rank.
  bool evaluateSlots(const Stmt &statement, uint32_t rank, std::vector<uint32_t> &out);
  void bind(const Stmt &statement);
  /// Tells the observer, if there is one, what the variable with this name is now.
  void show(SourceRange name, const Value &value) {
    if (options.observer)
      tell(*options.observer, name, value);
  }
  void tell(Observer &observer, SourceRange name, const Value &value) const;
  /// Runs `body` for all values of the loop variables; counts in numFailedLoops what it leaves out
  /// because of an error.
  Flow forEach(const Generators &generators, const Body &body, size_t depth = 0);

  // Expressions; false after an error, which is reported.
  bool evaluate(const Expr &expr, Type wanted, Value &out);
  bool evaluateScalar(const Expr &expr, int64_t &out);
  bool evaluateBinary(const Expr &expr, int64_t &out);
  bool evaluateDivision(const Expr &expr, int64_t a, int64_t b, int64_t &out);
  bool evaluateBuiltin(const Expr &expr, int64_t &out);
  bool evaluatePower(const Expr &expr, int64_t base, int64_t exponent, int64_t &out);
  bool evaluateMember(const Expr &expr, int64_t &out);
  bool evaluateListComparison(const Expr &expr, int64_t &out);
  bool evaluateListBuiltin(const Expr &expr, int64_t &out);
  /// The place of a chunk or location that is only asked about.
  bool evaluateSubject(const Expr &expr, Place &out);
  /// The same, if what lies there is asked about.
  bool evaluateContent(const Expr &expr, Place &out);
  bool evaluateOrigin(const Expr &expr, Contribution &out);
  bool evaluateContributions(const Expr &expr, int64_t &out);
  bool evaluateHas(const Expr &expr, int64_t &out);
  bool evaluatePlace(const Expr &expr, Place &out);
  bool evaluateLocation(const Expr &expr, Place &out);
  /// A chunk or range within `size` chunks, of the buffer or chunk `whole`, whose place is in `out`
  /// so far.
  bool evaluateRange(const Expr &first, const Expr *last, uint64_t size, const Expr &whole,
                     Place &out);
  bool evaluateChunk(const Expr &expr, Chunk &out);
  bool evaluateSlice(const Expr &expr, Chunk &out);
  bool evaluateReduce(const Expr &expr, Chunk &out);
  bool evaluateGroup(const Expr &expr, Chunk &out);
  /// Pushes the operands of a reduction or group on operandStack; lists count as their elements.
  bool pushOperands(const Expr &expr);
  bool pushOperand(const Expr &operand, size_t mark);
  /// Whether `count` more fit those from `mark` on; an error if not.
  bool checkNumOperands(size_t mark, size_t count, const Expr &operand);

  // Lists
  bool evaluateList(const Expr &expr, ListRef &out);
  /// Without taking a reference where a variable holds the list; otherwise `holder` does. Null
  /// after an error.
  const List *findList(const Expr &expr, ListRef &holder);
  /// The element of an indexed list, whose number is in `index`; null after an error.
  const List *findElement(const Expr &expr, ListRef &holder, size_t &index);
  /// An integer goes to the value's scalar, which stays as it is for other elements.
  static void takeElement(const List &list, size_t index, Value &out);
  bool buildList(const Expr &expr, ListRef &out);
  bool appendElement(const Expr &expr, Type element, List &list);
  bool concatenate(const Expr &expr, ListRef &out);
  bool evaluateSublist(const Expr &expr, ListRef &out);
  bool evaluateListResult(const Expr &expr, ListRef &out);
  bool splitChunk(const Expr &expr, ListRef &out);
  bool spendElements(uint64_t count, SourceRange place);
  bool call(const Expr &expr, Value &out);
  bool overflow(const Expr &expr);

  // Chunks
  bool read(const Place &place, const Expr &expr, Chunk &out);
  bool checkReadable(const Place &place, const Expr &expr);
  bool checkWritten(const Place &place, const Expr &expr);
  bool checkAliasedInput(const Place &place, const Expr &expr);
  bool checkFresh(const Chunk &chunk, const Expr &expr);
  /// Stores the reduction of the sources; one source: a copy.
  bool store(std::span<const Operand> sources, Place destination, const Expr &expr, Chunk &out);
  bool fitDestination(Place &destination, uint32_t count, const Expr &expr);
  bool checkStore(std::span<const Operand> sources, const Place &destination, const Expr &expr);
  void emitStore(std::span<const Operand> sources, const Place &destination, const Expr &expr,
                 Chunk &out);

  // Warnings, for a program that is right
  void warn();
  void warnOfSizes();
  void warnOfNothing();
  void warnOfMoves();
  /// Unmarks in `isDead` the moves without which an output would be another one, in this mode.
  void findDead(const Memory &memory, std::vector<bool> &isDead) const;

  // Budget
  bool spendSteps(uint64_t count, SourceRange place);
  bool spendOp(SourceRange place);
  /// Of operations and steps, as the options say, or as is usual for so many ranks.
  void setBudget(uint64_t numRanks);
  void reportBudget(const char *what, uint64_t budget, SourceRange place);
  /// False, and the end of the run, if so many chunks of all buffers are more than the options
  /// allow.
  bool spendChunks(uint64_t total, SourceRange place);

  // Precondition
  bool readPrecondition();
  bool readDefinedInput(const DefinedInput &defined);
  /// Of an input, the first one that is said to hold the same.
  Contribution sameAs(const Contribution &input) const;
  std::optional<LocationId> findUndefined(const Place &place) const;
  bool checkDefined(const Place &place, const Expr &expr);

  // Postcondition
  void checkPostcondition();
  bool visitRequirements(const std::function<void(const RequirementInstance &)> &visit);
  bool visitRequirement(const Requirement &requirement,
                        const std::function<void(const RequirementInstance &)> &visit);
  /// Whether the variables that the right side depends on have other values than last time.
  bool isNewRequirement(const Requirement &requirement);
  bool collectContributions(const Requirement &requirement, uint32_t count);
  void checkRequirement(const RequirementInstance &instance);
  std::string describeWrongOutputs() const;
  /// Whether the location holds what is wanted, if inputs that hold the same are told apart by
  /// nobody.
  bool holdsSame(const Memory &memory, LocationId location,
                 const std::vector<Contribution> &wanted);
  std::vector<Contribution> contentsOf(const Memory &memory, LocationId location);
  void recordRequirement(const RequirementInstance &instance);
  /// One more of the program's requirements, or more chunks of the last one.
  void appendRequirement(const Place &output, std::span<const Contribution> contributions);

  // Topologies
  void executeTopologyItem(const TopologyItem &item);
  void addCost(const TopologyItem &item);
  void addProtocol(const TopologyItem &item);
  void addNode(const TopologyItem &item);
  void addLink(const TopologyItem &item);
  void addSwitch(const TopologyItem &item);
  void addNic(const TopologyItem &item);
  bool evaluateQuantity(const Quantity &quantity, int64_t low, int64_t high, uint64_t &out);
  /// Bandwidth and latency of a link, switch or NIC.
  bool evaluateAttributes(const TopologyItem &item, uint64_t &bandwidth, uint64_t &latency);
  bool evaluateRank(const Expr &expr, uint32_t &out);
  bool evaluateRanks(const TopologyItem &item, std::vector<uint32_t> &out);
  bool checkCount(const TopologyItem &item, uint64_t count, uint64_t limit, const char *what);
  bool evaluateTopologyQuery(const Expr &expr, int64_t &out);
  bool answer(const topology::Topology &machine, TopologyQuery query, uint32_t a, uint32_t b,
              const Expr &expr, int64_t &out);
  bool answerGpus(const topology::Topology &machine, const Expr &expr, int64_t &out);
  bool checkNumRanks();
  /// Whether the topology, if there is one, has a way from one rank to another.
  bool checkLinks(const Expr &expr, uint32_t from, uint32_t to);

  // Messages
  Diagnostic &error(DiagnosticCode code, SourceRange place, const std::string &message);
  ContextId context();
  /// "called in place, " if a mistake that was found in this mode is none in the other.
  std::string modeText(const Memory &memory,
                       const std::function<bool(const Memory &)> &isAffected) const;
  /// Notes how to claim less, if a mistake is one in place only and nothing says that it must be
  /// right there; `mode` is what modeText said.
  void offerModes(const std::string &mode, Diagnostic &diagnostic) const;
  std::string valuesIn(const Expr &expr) const;
  Value &slot(uint32_t index) { return stack[frame + index]; }

  /// A loop that is running.
  struct Loop {
    const Generator *generator;
    int64_t value;
    ContextId context; // kNoContext until somebody asks
    uint64_t stepsBefore;
  };

  /// The sizes of a version, both included.
  struct Sizes {
    uint64_t first, last;
  };

  /// A -D.
  struct Define {
    std::string name, value;
    SourceRange range; // of the value
  };

  const Program &program;
  const AlgorithmDecl &algorithm;
  const ElaborationOptions &options;
  SourceManager &sources;
  ChunkSink &sink;
  DiagnosticEngine &diagnostics;

  ProgramInfo info;
  std::vector<Define> defines;
  std::vector<Sizes> versionSizes;
  size_t version = 0;
  Hints hints;
  int32_t numGroups = 0; // of aggregation
  Layout layout;
  std::vector<Memory> memories; // one a mode
  Trace trace;
  std::vector<Value> stack;
  Frame frame = 0;
  Frame collectiveFrame = 0;
  Value returned;
  Type returnType = Type::Void; // of the function that is running
  std::vector<Loop> loops;
  size_t numFailedLoops =
      0; // whose values could not be computed: what was made by them is no value
  std::vector<Operand> operandStack;
  std::vector<LocationId> locationBuffer;
  std::vector<ChunkHandle> handleBuffer;
  std::vector<Place> contributionBuffer; // of lastRequirement, for the values in lastKey
  std::vector<ContributionSum> expected; // of each chunk
  const Requirement *lastRequirement = nullptr;
  std::vector<int64_t> lastKey;
  std::vector<ListRef> lastLists;
  const Requirement *freeSlotsOf = nullptr;
  std::vector<uint32_t> freeSlots;
  std::vector<bool> isDefined;        // input locations that hold data at entry; empty: all
  std::vector<LocationId> equalInput; // of each location, one that holds the same; empty: itself
  std::vector<bool> isRequired;       // output locations that the postcondition has spoken of
  size_t wrongOutputs = 0;            // of these
  std::vector<bool> isRankWrong;
  size_t lastRecorded = 0;  // where the last of info.requirements begins
  uint64_t numRecorded = 0; // contributions in them
  unsigned callDepth = 0;
  uint64_t steps = 0;
  uint64_t ops = 0;
  uint64_t maxOps = 0, maxSteps = 0;
  topology::Topology *building = nullptr; // by runTopology
  size_t numPorts = 0;                    // of its switches
  std::pair<uint32_t, uint32_t> lastLink; // that there is
  bool stopped = false;
};

} // namespace occl::frontend
