// Names the culprits of a wrong result: exact numbers of contributions, and the ways that they
// took, for the values on its way only.
#include "plan/verify/checks/postcondition.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace occl::plan::verify {

namespace {

using Step = Symbolic::Step;
using Key = std::pair<uint32_t, uint32_t>; // rank, chunk

/// Longer ways are cut in the middle.
constexpr size_t kMaxWay = 8;
/// Contributions beyond are only counted.
constexpr uint32_t kMaxNamed = 3;

/// The values that went into one, as a graph: the sources of each, which are values or locations at
/// entry.
class Ancestry {
public:
  Ancestry(const std::vector<Step> &steps, uint32_t root) : root(root) {
    // The steps of one result are neighbours, and sources precede: one walk back finds what leads
    // to the root.
    paths[root] = 1;
    for (size_t i = steps.size(); i-- > 0;) {
      auto found = paths.find(steps[i].result);
      if (found == paths.end())
        continue;
      used.push_back(steps[i]);
      // The number of ways doubles at each join of a damaged plan, so it saturates rather than
      // wraps around.
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
    // As in the constructor, but for one contribution alone, forwards: counts are exact as long as
    // none exceeds 1, and at the first that does the search ends.
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

  /// The ways from the entry value of `location` to `result`, one through each source of `result`
  /// that holds it: results in order, without `result` itself.
  std::vector<std::vector<uint32_t>> waysTo(uint32_t result, uint32_t location) const {
    std::unordered_map<uint32_t, uint32_t> cameFrom; // of each result that holds it: a source
    std::vector<std::vector<uint32_t>> ways;
    const uint32_t entry = location | Symbolic::kEntry;
    for (const Step &step : used) {
      if (step.source != entry && !cameFrom.contains(step.source))
        continue;
      if (step.result != result) {
        // One way for each result is enough to show how the value came there; the first that is
        // found is the earliest.
        cameFrom.try_emplace(step.result, step.source);
        continue;
      }
      ways.emplace_back();
      // Back from the join to the entry, by the sources that were remembered, which is the wrong
      // order for a reader.
      for (uint32_t at = step.source; at != entry; at = cameFrom[at])
        ways.back().push_back(at);
      std::reverse(ways.back().begin(), ways.back().end());
    }
    return ways;
  }

  /// The results that went into the root with the most steps behind each other, in order.
  std::vector<uint32_t> longestWay() const {
    // The steps are in the order of execution, so every source's length is final when it is asked
    // for.
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> longest; // length, source
    for (const Step &step : used) {
      uint32_t length = longest.contains(step.source) ? longest[step.source].first + 1 : 1;
      auto &best = longest[step.result];
      if (length > best.first)
        best = {length, step.source};
    }
    std::vector<uint32_t> way;
    for (uint32_t at = root; longest.contains(at); at = longest[at].second)
      way.push_back(at);
    std::reverse(way.begin(), way.end());
    way.pop_back(); // the root itself
    return way;
  }

private:
  uint32_t root;
  std::vector<Step> used;                       // in order of execution
  std::unordered_map<uint32_t, uint64_t> paths; // to the root, from results and entry values
};

std::string nameOf(const Key &key) {
  return "rank " + std::to_string(key.first) + "'s input chunk " + std::to_string(key.second);
}

class Explainer {
public:
  Explainer(const Plan &plan, const Symbolic &symbolic, const std::vector<Step> &steps,
            uint32_t result, const std::vector<Contribution> &expected)
      : plan(plan), symbolic(symbolic), ancestry(steps, result), result(result) {
    // What is promised minus what is there: 0 where both agree, negative where something is
    // missing, positive where it is doubled or does not belong there.
    for (const Contribution &contribution : expected) {
      --surplus[{contribution.rank, contribution.chunk}];
      isExpected.insert({contribution.rank, contribution.chunk});
    }
    // Locations are numbered rank by rank; what a location held at entry is an input chunk of one
    // of them.
    ancestry.forEachEntry([&](uint32_t location, uint64_t number) {
      uint32_t rank = 0;
      while (location >= symbolic.locations().begin(rank + 1))
        ++rank;
      Key key = {rank, symbolic.locations().initialInput(rank, location)};
      surplus[key] += static_cast<int64_t>(number);
      locationOf[key] = location;
    });
  }

  Explanation run() {
    uint32_t numWrong = 0;
    for (const auto &[key, number] : surplus) {
      // A wrong plan is often wrong in thousands of contributions of the same kind; the first ones
      // tell the reason.
      if (number == 0 || ++numWrong > kMaxNamed)
        continue;
      if (number < 0)
        missing(key);
      else if (isExpected.contains(key))
        doubled(key, number + 1);
      else
        foreign(key);
    }
    // Of what is missing there is no way; what did arrive shows where it should have been taken in.
    if (numWrong > 0 && explanation.witness.empty())
      show("what it holds comes through ", ancestry.longestWay());
    if (numWrong > kMaxNamed)
      explanation.text += "; and " + std::to_string(numWrong - kMaxNamed) + " more";
    return std::move(explanation);
  }

private:
  void say(Code code, const std::string &text) {
    if (explanation.text.empty())
      explanation.code = code;
    explanation.text += (explanation.text.empty() ? "" : "; ") + text;
  }

  void missing(const Key &key) {
    say(Code::Missing, "the contribution of " + nameOf(key) + " is missing");
  }

  void doubled(const Key &key, int64_t number) {
    say(Code::Doubled,
        "the contribution of " + nameOf(key) + " is counted " + std::to_string(number) + " times");
    uint32_t join = ancestry.firstDouble(locationOf[key]);
    if (join == kNone)
      return;
    explanation.witness.push_back(noteAt(plan, symbolic.instructionOf(join), "counted twice in "));
    std::string before = "it comes ";
    for (const std::vector<uint32_t> &way : ancestry.waysTo(join, locationOf[key])) {
      if (way.empty())
        explanation.witness.push_back({before + "straight from " + nameOf(key)});
      show(before + "through ", way);
      before = "and again ";
    }
  }

  void foreign(const Key &key) {
    say(Code::Foreign, "it contains " + nameOf(key) + ", which does not belong there");
    for (const std::vector<uint32_t> &way : ancestry.waysTo(result, locationOf[key]))
      show(nameOf(key) + " comes through ", way);
  }

  void show(const std::string &before, const std::vector<uint32_t> &way) {
    for (size_t i = 0; i < way.size(); ++i) {
      // Both ends of a long way say more than its middle.
      if (i == kMaxWay / 2 && way.size() > kMaxWay) {
        size_t cut = way.size() - kMaxWay;
        explanation.witness.push_back({"... and " + std::to_string(cut) + " more ..."});
        i += cut;
      }
      explanation.witness.push_back(noteAt(plan, symbolic.instructionOf(way[i]), before));
    }
  }

  const Plan &plan;
  const Symbolic &symbolic;
  Ancestry ancestry;
  uint32_t result;
  std::map<Key, int64_t> surplus; // how often more than expected
  std::set<Key> isExpected;
  std::map<Key, uint32_t> locationOf;
  Explanation explanation;
};

} // namespace

Explanation explainContributions(const Plan &plan, const Symbolic &symbolic,
                                 const std::vector<Step> &steps, uint32_t result,
                                 const std::vector<Contribution> &expected) {
  return Explainer(plan, symbolic, steps, result, expected).run();
}

} // namespace occl::plan::verify
