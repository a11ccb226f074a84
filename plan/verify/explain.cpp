// Names the culprits of a wrong result: exact numbers of contributions, for the values on its way
// only.
#include "plan/verify/postcondition.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace occl::plan::verify {

namespace {

using Step = Symbolic::Step;
using Key = std::pair<uint32_t, uint32_t>; // rank, chunk

/// The values that went into one, as a graph: the sources of each, which are values or locations at
/// entry.
class Ancestry {
public:
  Ancestry(const std::vector<Step> &steps, uint32_t root) {
    // The steps of one result are neighbours, and sources precede: one walk back finds what leads
    // to the root.
    paths[root] = 1;
    for (size_t i = steps.size(); i-- > 0;) {
      auto found = paths.find(steps[i].result);
      if (found == paths.end())
        continue;
      used.push_back(steps[i]);
      uint64_t &paths = this->paths[steps[i].source];
      paths = std::min<uint64_t>(paths + this->paths[steps[i].result], ~0u);
    }
    std::reverse(used.begin(), used.end());
  }

  /// How often the entry value of a location went into the root.
  template <typename Visit> void forEachEntry(const Visit &visit) const {
    for (const auto &[source, number] : paths)
      if (source & Symbolic::kEntry)
        visit(source & ~Symbolic::kEntry, number);
  }

  /// The first result in which the entry value of `location` is counted more than once.
  uint32_t firstDouble(uint32_t location) const {
    std::unordered_map<uint32_t, uint64_t> counts = {{location | Symbolic::kEntry, 1}};
    for (const Step &step : used) {
      auto source = counts.find(step.source);
      if (source == counts.end())
        continue;
      uint64_t number = source->second;
      if ((counts[step.result] += number) > 1)
        return step.result;
    }
    return kNone;
  }

private:
  std::vector<Step> used;                       // in order of execution
  std::unordered_map<uint32_t, uint64_t> paths; // to the root, from results and entry values
};

std::string nameOf(const Key &key) {
  return "rank " + std::to_string(key.first) + "'s input chunk " + std::to_string(key.second);
}

} // namespace

std::pair<std::string, std::vector<std::string>>
explainContributions(const Plan &plan, const Symbolic &symbolic, const std::vector<Step> &steps,
                     uint32_t result, const std::vector<Contribution> &expected) {
  Ancestry ancestry(steps, result);
  std::map<Key, int64_t> surplus;
  std::map<Key, uint32_t> locationOf;
  for (const Contribution &contribution : expected)
    --surplus[{contribution.rank, contribution.chunk}];
  ancestry.forEachEntry([&](uint32_t location, uint64_t number) {
    uint32_t rank = 0;
    while (location >= symbolic.locations().begin(rank + 1))
      ++rank;
    Key key = {rank, symbolic.locations().initialInput(rank, location)};
    surplus[key] += static_cast<int64_t>(number);
    locationOf[key] = location;
  });
  std::pair<std::string, std::vector<std::string>> explanation;
  auto &[text, witness] = explanation;
  uint32_t numWrong = 0;
  for (const auto &[key, number] : surplus) {
    if (number == 0 || ++numWrong > 3)
      continue;
    bool isExpected = std::any_of(expected.begin(), expected.end(), [&](const Contribution &c) {
      return Key(c.rank, c.chunk) == key;
    });
    text += text.empty() ? "" : "; ";
    if (number < 0) {
      text += "the contribution of " + nameOf(key) + " is missing";
    } else if (!isExpected) {
      text += "it contains " + nameOf(key) + ", which does not belong there";
    } else {
      text += "the contribution of " + nameOf(key) + " is counted " + std::to_string(number + 1) +
              " times";
      uint32_t join = ancestry.firstDouble(locationOf[key]);
      if (join != kNone)
        witness.push_back("counted twice in " + describe(plan, symbolic.instructionOf(join)));
    }
  }
  if (numWrong > 3)
    text += "; and " + std::to_string(numWrong - 3) + " more";
  return explanation;
}

} // namespace occl::plan::verify
