// The head of a plan and its flat arrays. See shape.h.
#include "plan/collectives/promise.h"
#include "plan/verify/checks/shape.h"

#include <algorithm>
#include <tuple>

namespace occl::plan::verify {

namespace {

/// `path` is where it stands in a plan file; empty if no single place does.
Finding error(Code code, std::string path, std::string message) {
  return VerifyError{.code = code, .message = std::move(message), .path = std::move(path)};
}

std::string number(uint64_t value) { return std::to_string(value); }

Finding checkRange(const char *path, const char *what, uint64_t value, uint64_t least,
                   uint64_t most) {
  if (value >= least && value <= most)
    return {};
  return error(Code::LimitExceeded, path,
               std::string(what) + " is " + number(value) + ", allowed are " + number(least) +
                   " to " + number(most));
}

Finding checkNames(const Plan &plan, const Limits &most) {
  // A hash of 64 bits in hexadecimal. Ranks compare plans by it, so it is part of what must be well
  // formed.
  bool isHash = plan.sourceHash.size() == 16 &&
                plan.sourceHash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!isHash)
    return error(Code::BadHeader, "sourceHash",
                 "sourceHash is not 16 lower-case hexadecimal digits");
  if (plan.name.empty() || plan.collective.empty())
    return error(Code::BadHeader, plan.name.empty() ? "name" : "collective",
                 "the name of the algorithm or of the collective is empty");
  // One check for all names, which only bounds their memory: what is in them was checked when they
  // were read.
  size_t longest = std::max(plan.name.size(), plan.collective.size());
  for (const auto &[name, value] : plan.parameters)
    longest = std::max(longest, name.size());
  for (const std::string &file : plan.files)
    longest = std::max(longest, file.size());
  return checkRange("", "the length of a name", longest, 1, most.nameLength);
}

Finding checkHead(const Plan &plan, const Limits &most) {
  if (plan.schemaVersion != kSchemaVersion)
    return error(Code::BadHeader, "schemaVersion",
                 "the schema version is " + number(plan.schemaVersion) + ", expected " +
                     number(kSchemaVersion));
  // From here on each check may rely on the ones before: numRanks is at least 1, so there is a last
  // rank, and so on.
  if (Finding finding = checkNames(plan, most))
    return finding;
  if (Finding finding = checkRange("numRanks", "numRanks", plan.numRanks, 1, most.ranks))
    return finding;
  if (plan.ranks.size() != plan.numRanks)
    return error(Code::BadHeader, "numRanks",
                 "numRanks is " + number(plan.numRanks) + ", but there are " +
                     number(plan.ranks.size()) + " ranks");
  if (Finding finding = checkRange("partChunks", "partChunks", plan.partChunks, 1, most.chunks))
    return finding;
  if (Finding finding = checkRange("root", "root", plan.root, 0, plan.numRanks - 1))
    return finding;
  if (Finding finding = checkRange("depth", "depth", plan.depth, 1, most.depth))
    return finding;
  // Enumerators come from files as numbers.
  if (plan.protocol > Protocol::LL128)
    return error(Code::BadHeader, "protocol", "the protocol is invalid");
  if (!plan.outOfPlace && !plan.inPlace)
    return error(Code::BadHeader, "outOfPlace",
                 "the plan claims neither in place nor out of place: it is valid for nothing");
  if (plan.minBytes > plan.maxBytes)
    return error(Code::BadHeader, "minBytes",
                 "minBytes " + number(plan.minBytes) + " exceeds maxBytes " +
                     number(plan.maxBytes));
  return {};
}

Finding checkTotals(const Plan &plan, const Limits &most) {
  // All arrays at once, before anything goes over their elements.
  const std::tuple<const char *, const char *, size_t, uint64_t> totals[] = {
      {"parameters", "the number of parameters", plan.parameters.size(), most.parameters},
      {"ranks", "the number of thread blocks", plan.threadBlocks.size(), most.totalThreadBlocks},
      {"ranks", "the number of instructions", plan.instructions.size(), most.instructions},
      {"ranks", "the number of operands", plan.operands.size(), most.totalOperands},
      {"ranks", "the number of dependencies", plan.dependencies.size(), most.totalDependencies},
      {"connections", "the number of connections", plan.connections.size(), most.connections},
      {"connections", "the number of destinations", plan.destinations.size(),
       most.totalDestinations},
      {"requirements", "the number of requirements", plan.requirements.size(), most.requirements},
      {"requirements", "the number of contributions", plan.contributions.size(),
       most.totalContributions},
      {"witnesses", "the number of witnesses", plan.witnesses.size(), most.witnesses},
      {"witnesses", "the number of places of witnesses", plan.places.size(), most.totalPlaces},
      {"files", "the number of files", plan.files.size(), most.files},
      {"locations", "the number of locations", plan.locations.size(), most.locations}};
  for (const auto &[path, what, size, limit] : totals)
    if (Finding finding = checkRange(path, what, size, 0, limit))
      return finding;
  return {};
}

/// Whether the ranges [first, first + size) of `items` lie in order, without gap, and cover an
/// array of `total`.
template <typename Item, typename Range>
Finding checkFlat(const char *what, const std::vector<Item> &items, size_t total,
                  const Range &range) {
  // One pass without memory: every range must begin where the one before ended. This excludes gaps,
  // overlaps and ranges beyond the end, so that the proofs may go over a plan's arrays in any way
  // they like.
  uint64_t next = 0;
  for (const Item &item : items) {
    auto [first, size] = range(item);
    // `total - next` cannot wrap around: next never exceeds total.
    if (first != next || size > total - next)
      return error(Code::BadLayout, "",
                   std::string(what) + " do not follow each other in the plan's arrays");
    next += size;
  }
  if (next != total)
    return error(Code::BadLayout, "", std::string(what) + " do not cover the plan's arrays");
  return {};
}

using Range = std::pair<uint64_t, uint64_t>;

Finding checkLayout(const Plan &plan, const Limits &) {
  // From ranks down to operands and dependencies, then connections, witnesses and requirements: for
  // each array that is divided among others, that the shares cover it in order.
  if (Finding finding =
          checkFlat("the thread blocks of ranks", plan.ranks, plan.threadBlocks.size(),
                    [](const RankPlan &r) { return Range(r.firstThreadBlock, r.numThreadBlocks); }))
    return finding;
  if (Finding finding = checkFlat(
          "the instructions of thread blocks", plan.threadBlocks, plan.instructions.size(),
          [](const ThreadBlock &b) { return Range(b.firstInstruction, b.numInstructions); }))
    return finding;
  if (Finding finding = checkFlat("the operands of instructions", plan.instructions,
                                  plan.operands.size(), [](const Instruction &i) {
                                    return Range(i.firstOperand,
                                                 uint64_t{i.numSources} + i.numDestinations);
                                  }))
    return finding;
  if (Finding finding = checkFlat(
          "the dependencies of instructions", plan.instructions, plan.dependencies.size(),
          [](const Instruction &i) { return Range(i.firstDependency, i.numDependencies); }))
    return finding;
  if (Finding finding = checkFlat(
          "the destinations of connections", plan.connections, plan.destinations.size(),
          [](const Connection &c) { return Range(c.firstDestination, c.numDestinations); }))
    return finding;
  if (Finding finding =
          checkFlat("the places of witnesses", plan.witnesses, plan.places.size(),
                    [](const Witness &w) { return Range(w.firstPlace, w.numPlaces); }))
    return finding;
  return checkFlat(
      "the contributions of requirements", plan.requirements, plan.contributions.size(),
      [](const Requirement &r) { return Range(r.firstContribution, r.numContributions); });
}

/// In place, chunks that share memory must begin and end together, whatever the count is.
Finding checkInPlace(const Plan &plan, const Limits &) {
  for (uint32_t r = 0; plan.inPlace && !plan.uniformChunks && r < plan.numRanks; ++r) {
    const RankPlan &rank = plan.ranks[r];
    const int64_t offset = rank.inPlaceOffset;
    // The first pair of chunks that are the same memory in place, if the two buffers overlap at
    // all. All others have the same distance, so one pair decides for all.
    const int64_t input = std::max<int64_t>(0, -offset), output = input + offset;
    if (offset % int64_t{plan.partChunks} != 0 && input < rank.inputChunks &&
        output < rank.outputChunks)
      return error(Code::WrongExtent, "ranks[" + number(r) + "]",
                   "rank " + number(r) + ": in place, input chunk " + std::to_string(input) +
                       " is output chunk " + std::to_string(output) +
                       ", which is another chunk of a part of " + number(plan.partChunks) +
                       ": only a plan for uniform chunks may mix them");
  }
  return {};
}

Finding checkRanks(const Plan &plan, const Limits &most) {
  uint64_t total = 0;
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    const RankPlan &rank = plan.ranks[r];
    std::string name = "rank " + number(r) + ": ";
    std::string path = "ranks[" + number(r) + "]";
    // Counted in 64 bits over all ranks: the proofs keep a value for each chunk.
    for (uint32_t chunks : {rank.inputChunks, rank.outputChunks, rank.scratchChunks}) {
      if (chunks > most.chunks)
        return error(Code::LimitExceeded, path,
                     name + "a buffer has " + number(chunks) + " chunks, allowed are " +
                         number(most.chunks));
      total += chunks;
    }
    // A part is the unit of a collective's promise; what is no whole number of parts has no chunk
    // sizes.
    if (rank.inputChunks % plan.partChunks != 0 || rank.outputChunks % plan.partChunks != 0)
      return error(Code::BadBuffer, path,
                   name + "input and output do not consist of whole parts of " +
                       number(plan.partChunks) + " chunks");
    if (rank.numThreadBlocks > most.threadBlocks)
      return error(Code::LimitExceeded, path,
                   name + number(rank.numThreadBlocks) + " thread blocks, allowed are " +
                       number(most.threadBlocks));
  }
  return checkRange("ranks", "the number of chunks of all buffers", total, 0, most.totalChunks);
}

Finding checkConnections(const Plan &plan, const Limits &most) {
  for (uint32_t c = 0; c < plan.connections.size(); ++c) {
    const Connection &connection = plan.connections[c];
    std::span<const uint32_t> destinations = plan.destinationsOf(connection);
    auto connectionError = [&](const std::string &what) {
      return error(Code::BadConnection, "connections[" + number(c) + "]",
                   "connection " + number(c) + ": " + what);
    };
    if (connection.source >= plan.numRanks)
      return connectionError("there is no source rank " + number(connection.source));
    if (connection.channel >= most.channels)
      return connectionError("the channel is " + number(connection.channel) +
                             ", allowed are 0 to " + number(most.channels - 1));
    // LL and LL128 give data and flag together, so that a receiver learns nothing of what its
    // sender did before.
    if (connection.isOrdered && plan.protocol != Protocol::Simple)
      return connectionError("it is marked ordered, but only messages of protocol Simple can order "
                             "more than the data that they carry");
    // A counter has one number to count; channels distinguish FIFOs.
    if (connection.isCounter && (connection.channel != 0 || connection.isOrdered))
      return connectionError("it is a counter, which has no channel and is not marked ordered");
    if (destinations.empty())
      return connectionError("it has no destination");
    if (destinations.back() >= plan.numRanks)
      return connectionError("there is no destination rank " + number(destinations.back()));
    // Ascending and different, so that a destination is found by bisection, and multicasts have one
    // spelling.
    for (size_t i = 0; i < destinations.size(); ++i) {
      if (i > 0 && destinations[i - 1] >= destinations[i])
        return connectionError("the destinations do not ascend");
      if (destinations[i] == connection.source)
        return connectionError("rank " + number(connection.source) + " is source and destination");
    }
  }
  return {};
}

Finding checkRequirement(const Plan &plan, uint32_t index, const Limits &most, uint64_t &work) {
  const Requirement &requirement = plan.requirements[index];
  std::string name = "requirement " + number(index) + ": ";
  std::string path = "requirements[" + number(index) + "]";
  if (requirement.rank >= plan.numRanks)
    return error(Code::BadRequirement, path, name + "there is no rank " + number(requirement.rank));
  if (requirement.count == 0 || requirement.numContributions == 0)
    return error(Code::BadRequirement, path, name + "it has no chunk or no contribution");
  // In 64 bits, as both numbers are the file's.
  auto isInside = [&](uint32_t first, uint32_t size) {
    return uint64_t{first} + requirement.count <= size;
  };
  if (!isInside(requirement.outputChunk, plan.ranks[requirement.rank].outputChunks))
    return error(Code::BadRequirement, path, name + "it lies outside of the output");
  for (const Contribution &contribution : plan.contributionsOf(requirement))
    if (contribution.rank >= plan.numRanks ||
        !isInside(contribution.chunk, plan.ranks[contribution.rank].inputChunks))
      return error(Code::BadRequirement, path,
                   name + "a contribution lies outside of rank " + number(contribution.rank) +
                       "'s input");
  // Every chunk of every contribution is added up by proof 5.
  work += uint64_t{requirement.count} * requirement.numContributions;
  return checkRange("requirements", "the number of chunks that requirements name", work, 0,
                    most.chunkAccesses);
}

Finding checkCollective(const Plan &plan, const Limits &most) {
  // A standard collective says by its name what it promises; sizes must be those of the name, and a
  // second description could contradict it.
  if (std::optional<StandardCollective> collective = standardCollectiveOf(plan.collective)) {
    if (!plan.hasPostcondition)
      return error(Code::NoPromise, "postcondition",
                   "the plan says that nobody knows what it computes, but " + plan.collective +
                       " is a standard collective");
    if (!plan.requirements.empty())
      return error(Code::NoPromise, "requirements",
                   "the plan has requirements of its own for the standard collective " +
                       plan.collective);
    std::string wrong = checkSizes(plan, *collective);
    return wrong.empty() ? Finding()
                         : error(Code::WrongSizes, "ranks", plan.collective + ": " + wrong);
  }
  // The other collectives list what they promise, or say that nobody knows.
  if (!plan.hasPostcondition && !plan.requirements.empty())
    return error(Code::NoPromise, "postcondition",
                 "the plan says that nobody knows what it computes, but has requirements");
  if (plan.hasPostcondition && plan.requirements.empty() && !plan.instructions.empty())
    return error(
        Code::NoPromise, "collective",
        "'" + plan.collective +
            "' is no standard collective, and the plan has no requirements: there is nothing "
            "to verify it against; if none can be known, say \"postcondition\": false");
  uint64_t work = 0;
  for (uint32_t i = 0; i < plan.requirements.size(); ++i)
    if (Finding finding = checkRequirement(plan, i, most, work))
      return finding;
  return {};
}

} // namespace

Finding checkStructure(const Plan &plan, const Limits &most) {
  for (Finding (*check)(const Plan &, const Limits &) :
       {checkHead, checkTotals, checkLayout, checkRanks, checkConnections, checkCollective,
        checkInPlace})
    if (Finding finding = check(plan, most))
      return finding;
  return {};
}

} // namespace occl::plan::verify
