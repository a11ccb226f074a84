// The plans that come with the library, so that a call names a collective and not a plan:
// those of algorithms/{host,device,resident}_plans.tsv, compiled, verified and packed when the
// library is built, and unpacked at their first use.
#pragma once

#include "plan/collectives/collectives.h"
#include "plan/model/plan.h"
#include "runtime/base/status.h"
#include "runtime/plan_library/archive.h"
#include "runtime/plan_library/plan_table.h"
#include "runtime/sync/mutex.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace occl::plan_library {

/// The collectives that the library has plans of.
using Kind = plan::StandardCollective;
inline constexpr uint32_t kNumKinds = plan::kNumStandardCollectives;

/// Where the ranks are and what their buffers are. Registered: all ranks' buffers can be accessed
/// by all ranks (occlMemAlloc). Ordinary: by their owner alone, so that the plan sends messages.
/// Device: executed in streams; resident: by the daemon of a device.
enum class PlanClass : uint8_t {
  HostRegistered,
  HostOrdinary,
  DeviceRegistered,
  DeviceOrdinary,
  ResidentRegistered,
  ResidentOrdinary
};
inline constexpr uint32_t kNumClasses = 6;

/// The greatest number of ranks that there are plans for. algorithms/compile_plans.py has the same.
constexpr uint32_t maxRanks(PlanClass where) {
  return where == PlanClass::HostRegistered || where == PlanClass::HostOrdinary ? 32 : 8;
}

/// Of devices there are plans for parts of any size that have no more thread blocks than this.
inline constexpr uint32_t kFewestBlocks = 16;

/// What a plan is wanted for. The choice depends on nothing else, so that ranks that say the same
/// get the same.
struct Wanted {
  Kind kind = Kind::AllReduce;
  uint32_t numRanks = 1;
  uint64_t bytes = 0; // of one part: count * size of an element
  /// Of broadcast, reduce, gather and scatter; 0 for the others.
  uint32_t root = 0;
  PlanClass where = PlanClass::HostOrdinary;
  /// On which the ranks lie, as many on each, and numbered island by island: rank = island *
  /// (numRanks / numIslands) + local. 1 also for ranks that lie otherwise.
  uint32_t numIslands = 1;
  /// Thread blocks of a rank at most. With less than kFewestBlocks there may be no plan.
  uint32_t maxBlocks = ~0u;
};

struct ChosenPlan {
  /// Verified, when the library was built, or of other roots than 0 when it was relabelled; shared
  /// by all who have chosen it.
  std::shared_ptr<const plan::Plan> plan;
  /// plan::hashPlan, as of plans that are loaded from files: equal on all ranks that have the plan,
  /// and another for each root.
  uint64_t hash = 0;
};

/// Any thread.
class PlanLibrary {
public:
  /// Of an archive (archive.h); `bytes` outlive the library.
  explicit PlanLibrary(std::span<const uint8_t> bytes);

  /// That of the process, over the archive that is embedded, with the table that OCCL_PLAN_TABLE in
  /// the environment names. If there is something wrong with that, choose() says so.
  static PlanLibrary &ofProcess();

  /// Reads the index of the archive, so that no call has to: some 0.5 ms, once.
  void prepare();

  /// Replaces, for the classes, collectives and numbers of ranks and islands of which it has rows,
  /// which sizes a plan is for; beyond the last row's size the library's own choice stays.
  /// InvalidArgument, and nothing changed, if the text is no table or names plans that the library
  /// does not have for hosts.
  Status useTable(const std::string &text, const std::string &origin);

  /// The algorithms of the library's own plans, by their numbers less one: those for one island,
  /// then those for as many as there are. Empty if there are none.
  StatusOr<std::vector<std::string>> algorithmsFor(Kind kind, uint32_t numRanks, PlanClass where,
                                                   uint32_t numIslands = 1);

  /// The number of the plan that choose() would give.
  StatusOr<size_t> numberFor(const Wanted &wanted);

  /// The plan for a collective. The first call for a plan unpacks it (on devices mostly less than a
  /// millisecond; with another root than 0 it is relabelled and verified, up to 2), and others who
  /// want a plan then wait; later ones look it up.
  /// InvalidArgument if there is no such rank as the root, or no plan of the library is for so many
  /// ranks: then the caller needs a plan of his own. InternalError if the archive is damaged.
  StatusOr<ChosenPlan> choose(const Wanted &wanted);

private:
  using Key = std::pair<uint64_t, uint32_t>; // first byte in the archive, root
  /// A plan, its number among those for the same ranks, and up to which size who has it chosen.
  struct Choice {
    const Entry *entry = nullptr; // null, of several islands: what one has
    size_t number = 0;
    uint64_t maxBytes = 0;
    const std::string *table = nullptr; // null: the library
  };
  /// By size, the smallest first.
  using BySize = std::vector<Choice>;
  using ByRanks = std::vector<BySize>;
  using Index = std::array<std::array<ByRanks, kNumKinds>, kNumClasses>;
  /// Class, kind, numbers of ranks and of islands.
  using Place = std::tuple<size_t, size_t, uint32_t, uint32_t>;

  void readArchive();
  void addGroup(const Group &group);
  BySize &choicesAt(const Place &place);
  /// Of one island, and of as many as there are: nothing where there are no plans, or no several.
  std::array<std::span<const Choice>, 2> choicesFor(const Place &place) const;
  void readTableFile();
  StatusOr<Choice> chooseInTable(const TableRow &row, const std::string &origin) const;
  Status useRows(const std::vector<TableRow> &rows, const std::string &origin);
  StatusOr<Choice> find(const Wanted &wanted);
  StatusOr<ChosenPlan> load(const Entry &entry, const Wanted &wanted);

  std::span<const uint8_t> bytes;
  Mutex mutex;
  std::unique_ptr<const StatusOr<Archive>> archive; // null: its index is not read yet
  Index index;                                      // of one island
  std::map<Place, BySize> ofIslands;                // and of several
  std::string tablePath, tableOrigin; // of a file to be read with the archive; of what is used
  Status tableStatus;
  bool explains = false; // OCCL_DEBUG=info: says what it chooses
  std::map<Key, ChosenPlan> chosen;
};

} // namespace occl::plan_library
