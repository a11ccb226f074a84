// The choice of a plan: by the archive of the library, or by a table of the program's.
#include "runtime/plan_library/plan_library.h"

#include "plan/model/hash.h"
#include "plan/transform/relabel.h"
#include "plan/verify/verifier.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

// Made by the rule embedded_plans: the archive's first byte, and that after its last.
extern "C" const uint8_t occlEmbeddedPlansBegin[], occlEmbeddedPlansEnd[];

namespace occl::plan_library {

namespace {

constexpr std::array<std::string_view, kNumClasses> kClasses = {
    "host-registered", "host-ordinary",       "device-registered",
    "device-ordinary", "resident-registered", "resident-ordinary"};

std::string textOf(uint32_t numRanks, uint32_t numIslands) {
  return std::to_string(numRanks) + " ranks" +
         (numIslands > 1 ? " on " + std::to_string(numIslands) + " islands" : "");
}

std::string textOf(const Wanted &wanted) {
  return std::string(nameOf(wanted.kind)) + " of " + textOf(wanted.numRanks, wanted.numIslands);
}

Status check(const Wanted &wanted) {
  // The texts below name the collective, so it is checked first.
  if (static_cast<uint32_t>(wanted.kind) >= kNumKinds ||
      static_cast<uint32_t>(wanted.where) >= kNumClasses)
    return {StatusCode::InvalidArgument, "there is no such collective, or no such place for it"};
  if (wanted.numRanks == 0 || wanted.numRanks > maxRanks(wanted.where))
    return {StatusCode::InvalidArgument,
            textOf(wanted) + ": OCCL comes with plans for 1 to " +
                std::to_string(maxRanks(wanted.where)) +
                " ranks; compile a plan of your own with occlc and give it to the call"};
  if (wanted.numIslands == 0 || wanted.numRanks % wanted.numIslands != 0)
    return {StatusCode::InvalidArgument,
            textOf(wanted) + ": plans are for islands of as many ranks each; say 1 for others"};
  // A root without meaning has to be 0, or ranks could differ in it.
  if (hasRoot(wanted.kind) ? wanted.root >= wanted.numRanks : wanted.root != 0)
    return {StatusCode::InvalidArgument,
            textOf(wanted) + ": root is " + std::to_string(wanted.root) +
                (hasRoot(wanted.kind) ? ", but ranks count from 0" : "; it has none: give 0")};
  return {};
}

const char *nameOf(plan::Protocol protocol) {
  switch (protocol) {
  case plan::Protocol::LL:
    return "LL";
  case plan::Protocol::LL128:
    return "LL128";
  default:
    return "Simple";
  }
}

/// The class or kind of that name, or how many there are.
size_t classOf(std::string_view name) {
  return static_cast<size_t>(std::ranges::find(kClasses, name) - kClasses.begin());
}
size_t kindOf(std::string_view name) {
  const auto kind = plan::collectiveOfName(name);
  return kind ? static_cast<size_t>(*kind) : kNumKinds;
}

} // namespace

PlanLibrary::PlanLibrary(std::span<const uint8_t> bytes) : bytes(bytes) {}

PlanLibrary &PlanLibrary::ofProcess() {
  // Never destroyed: threads may still call when the process ends.
  static PlanLibrary *library = [] {
    auto *made =
        new PlanLibrary({occlEmbeddedPlansBegin,
                         static_cast<size_t>(occlEmbeddedPlansEnd - occlEmbeddedPlansBegin)});
    if (const char *path = std::getenv("OCCL_PLAN_TABLE"))
      made->tablePath = path;
    const char *debug = std::getenv("OCCL_DEBUG");
    made->explains = debug && std::string_view(debug) == "info";
    return made;
  }();
  return *library;
}

void PlanLibrary::prepare() {
  std::lock_guard lock(mutex);
  if (!archive)
    readArchive();
}

StatusOr<std::vector<std::string>>
PlanLibrary::algorithmsFor(Kind kind, uint32_t numRanks, PlanClass where, uint32_t numIslands) {
  std::lock_guard lock(mutex);
  if (!archive)
    readArchive();
  if (!archive->ok())
    return archive->status();
  std::vector<std::string> algorithms;
  for (const auto choices :
       choicesFor({static_cast<size_t>(where), static_cast<size_t>(kind), numRanks, numIslands}))
    for (const Choice &choice : choices)
      if (choice.entry && !choice.table)
        algorithms.emplace_back(choice.entry->algorithm);
  return algorithms;
}

StatusOr<size_t> PlanLibrary::numberFor(const Wanted &wanted) {
  std::lock_guard lock(mutex);
  StatusOr<Choice> choice = find(wanted);
  if (!choice.ok())
    return choice.status();
  return choice->number;
}

StatusOr<ChosenPlan> PlanLibrary::choose(const Wanted &wanted) {
  std::lock_guard lock(mutex);
  StatusOr<Choice> choice = find(wanted);
  if (!choice.ok())
    return choice.status();
  const Entry &entry = *choice->entry;
  // A plan is unpacked once for each root.
  const Key key = {entry.firstByte, wanted.root};
  if (auto known = chosen.find(key); known != chosen.end())
    return known->second;
  StatusOr<ChosenPlan> loaded = load(entry, wanted);
  if (!loaded.ok())
    return loaded;
  chosen.emplace(key, *loaded);
  // Explained at the first use alone.
  if (explains) {
    const std::string upTo = choice->maxBytes == ~uint64_t{0}
                                 ? "of any size beyond the plans before"
                                 : "of up to " + std::to_string(choice->maxBytes) + " bytes";
    std::fprintf(stderr, "occl: %s, %s: plan %zu, %s, %s, which %s has for parts %s\n",
                 textOf(wanted).c_str(), kClasses[static_cast<size_t>(wanted.where)].data(),
                 choice->number, std::string(entry.algorithm).c_str(),
                 nameOf(loaded->plan->protocol),
                 choice->table ? choice->table->c_str() : "the library", upTo.c_str());
  }
  return loaded;
}

void PlanLibrary::readArchive() {
  archive = std::make_unique<const StatusOr<Archive>>(Archive::read(bytes));
  if (!archive->ok())
    return;
  // Those of one island are counted before those of several.
  for (const bool areSeveral : {false, true})
    for (const Group &group : (**archive).groups())
      if (areSeveral == (group.numIslands > 1))
        addGroup(group);
  if (!tablePath.empty())
    readTableFile();
}

void PlanLibrary::addGroup(const Group &group) {
  const Place place = {classOf(group.planClass), kindOf(group.collective), group.numRanks,
                       group.numIslands};
  const auto &[where, kind, numRanks, numIslands] = place;
  if (where == kNumClasses || kind == kNumKinds)
    return; // of a later version
  // Numbers go on behind those of one island, so that a number names one plan of a shape.
  size_t number = numIslands > 1 ? choicesFor(place)[0].size() : 0;
  BySize &choices = choicesAt(place);
  // Up to this size there is nothing: the plans of one island serve.
  if (numIslands > 1)
    choices.push_back({nullptr, 0, group.flatBytes, nullptr});
  for (const Entry &entry : group.entries)
    choices.push_back({&entry, ++number, entry.maxBytes, nullptr});
}

PlanLibrary::BySize &PlanLibrary::choicesAt(const Place &place) {
  const auto &[where, kind, numRanks, numIslands] = place;
  if (numIslands > 1)
    return ofIslands[place];
  ByRanks &byRanks = index[where][kind];
  if (byRanks.size() <= numRanks)
    byRanks.resize(numRanks + 1);
  return byRanks[numRanks];
}

std::array<std::span<const PlanLibrary::Choice>, 2>
PlanLibrary::choicesFor(const Place &place) const {
  const auto &[where, kind, numRanks, numIslands] = place;
  std::array<std::span<const Choice>, 2> found;
  if (const ByRanks &byRanks = index[where][kind]; numRanks < byRanks.size())
    found[0] = byRanks[numRanks];
  if (numIslands > 1)
    if (const auto several = ofIslands.find(place); several != ofIslands.end())
      found[1] = several->second;
  return found;
}

void PlanLibrary::readTableFile() {
  std::ifstream file(tablePath);
  // A folder can be opened, and not read.
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  if (text.empty()) {
    tableStatus = {StatusCode::InvalidArgument,
                   "OCCL_PLAN_TABLE names '" + tablePath + "', which cannot be read or is empty"};
    return;
  }
  auto rows = readPlanTable(text, tablePath);
  tableStatus = rows.ok() ? useRows(*rows, tablePath) : rows.status();
  if (!tableStatus.ok())
    tableStatus = {tableStatus.code(), "OCCL_PLAN_TABLE: " + tableStatus.message()};
}

Status PlanLibrary::useTable(const std::string &text, const std::string &origin) {
  auto rows = readPlanTable(text, origin);
  if (!rows.ok())
    return rows.status();
  std::lock_guard lock(mutex);
  if (!archive)
    readArchive();
  return archive->ok() ? useRows(*rows, origin) : archive->status();
}

/// Which plan a row means, found in the index as it is without tables.
StatusOr<PlanLibrary::Choice> PlanLibrary::chooseInTable(const TableRow &row,
                                                         const std::string &origin) const {
  const auto wrong = [&](const std::string &what) {
    return Status(StatusCode::InvalidArgument,
                  origin + ":" + std::to_string(row.line) + ": " + what);
  };
  const size_t where = classOf(row.planClass);
  const size_t kind = kindOf(row.collective);
  if (where == kNumClasses || kind == kNumKinds)
    return wrong("there is no class '" + row.planClass + "' or no collective '" + row.collective +
                 "'");
  if (!row.planClass.starts_with("host-"))
    return wrong(
        "tables are for hosts; what devices have for messages depends on the sizes of plans");
  const std::string of =
      row.planClass + " " + row.collective + " of " + textOf(row.numRanks, row.numIslands);
  // The number finds the plan, and the algorithm shows that it is the one that was meant.
  for (const auto choices : choicesFor({where, kind, row.numRanks, row.numIslands}))
    for (const Choice &choice : choices) {
      if (choice.table || choice.number != row.number)
        continue;
      if (choice.entry->algorithm != row.algorithm)
        return wrong("plan " + std::to_string(row.number) + " for " + of + " is " +
                     std::string(choice.entry->algorithm) + ", not " + row.algorithm +
                     ": the table was made for another version of OCCL");
      return Choice{choice.entry, choice.number, row.maxBytes, &tableOrigin};
    }
  return wrong("the library has no plan " + std::to_string(row.number) + " for " + of);
}

Status PlanLibrary::useRows(const std::vector<TableRow> &rows, const std::string &origin) {
  // All rows are looked up before anything changes.
  std::map<Place, BySize> replaced;
  for (const TableRow &row : rows) {
    StatusOr<Choice> choice = chooseInTable(row, origin);
    if (!choice.ok())
      return choice.status();
    replaced[{classOf(row.planClass), kindOf(row.collective), row.numRanks, row.numIslands}]
        .push_back(*choice);
  }
  // Rows of a table go before the library's, which serve sizes beyond them.
  tableOrigin = origin;
  for (auto &[place, choices] : replaced) {
    BySize &ofLibrary = choicesAt(place);
    ofLibrary.insert(ofLibrary.begin(), choices.begin(), choices.end());
  }
  return {};
}

StatusOr<PlanLibrary::Choice> PlanLibrary::find(const Wanted &wanted) {
  if (Status status = check(wanted); !status.ok())
    return status;
  if (!archive)
    readArchive();
  if (!archive->ok())
    return archive->status();
  if (!tableStatus.ok())
    return tableStatus;
  // Plans for islands go before those for one island, and smaller limits before larger ones.
  const auto [flat, ofShape] =
      choicesFor({static_cast<size_t>(wanted.where), static_cast<size_t>(wanted.kind),
                  wanted.numRanks, wanted.numIslands});
  for (const auto choices : {ofShape, flat}) {
    const auto first = std::ranges::find_if(choices, [&](const Choice &choice) {
      return wanted.bytes <= choice.maxBytes &&
             (!choice.entry || choice.entry->numBlocks <= wanted.maxBlocks);
    });
    if (first != choices.end() && first->entry)
      return *first;
  }
  return Status(StatusCode::InvalidArgument,
                textOf(wanted) + ": OCCL comes with no plan for parts of " +
                    std::to_string(wanted.bytes) +
                    " bytes; compile one of your own with occlc and give it to the call");
}

/// With another root it is the same plan, whose ranks have other names, and which nobody has
/// verified.
StatusOr<ChosenPlan> PlanLibrary::load(const Entry &entry, const Wanted &wanted) {
  StatusOr<plan::Plan> unpacked = (**archive).planOf(entry);
  if (!unpacked.ok())
    return unpacked.status();
  // The archive's plans were verified when it was made.
  if (wanted.root == unpacked->root)
    return ChosenPlan{std::make_shared<const plan::Plan>(std::move(*unpacked)), entry.hash};
  // Renamed ranks make another plan, which is verified here.
  auto relabelled = plan::relabelled(*unpacked, wanted.root, entry.numIslands);
  if (!relabelled)
    return Status(StatusCode::InternalError, "the plan that comes with OCCL for " + textOf(wanted) +
                                                 ": " + relabelled.message());
  const plan::VerifyResult verified = plan::verifyPlan(*relabelled, {.findSmallestDepth = false});
  if (!verified)
    return Status(StatusCode::InternalError,
                  "the plan that comes with OCCL for " + textOf(wanted) + ": " + verified.text());
  const uint64_t hash = plan::hashPlan(*relabelled);
  return ChosenPlan{std::make_shared<const plan::Plan>(std::move(*relabelled)), hash};
}

} // namespace occl::plan_library
