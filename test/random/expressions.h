// What chunks contain, exactly: expressions over the elements of the inputs. Equal numbers mean
// equal expressions, operand order included, and so equal bits whatever the elements are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace occl::random {

class Expressions {
public:
  /// Chunk `chunk` of rank `rank`'s input at entry.
  uint32_t input(uint32_t rank, uint32_t chunk) { return intern({rank, ~chunk}, true); }
  /// left + right.
  uint32_t sum(uint32_t left, uint32_t right) { return intern({left, right}, false); }

  /// The expression of part `part` of `factor` where every chunk is cut into `factor`.
  uint32_t refined(uint32_t expression, uint32_t factor, uint32_t part) {
    Node node = nodes[expression];
    if (node.isInput)
      return input(node.operands.first, ~node.operands.second * factor + part);
    return sum(refined(node.operands.first, factor, part),
               refined(node.operands.second, factor, part));
  }

  std::string text(uint32_t expression) const {
    const Node &node = nodes[expression];
    auto [a, b] = node.operands;
    if (node.isInput)
      return "input[" + std::to_string(a) + "][" + std::to_string(~b) + "]";
    return "(" + text(a) + " + " + text(b) + ")";
  }

private:
  using Operands = std::pair<uint32_t, uint32_t>;
  struct Node {
    Operands operands;
    bool isInput;
  };

  uint32_t intern(Operands operands, bool isInput) {
    auto &known = isInput ? inputs : sums;
    auto [found, isNew] = known.try_emplace(operands, static_cast<uint32_t>(nodes.size()));
    if (isNew)
      nodes.push_back({operands, isInput});
    return found->second;
  }

  std::vector<Node> nodes;
  std::map<Operands, uint32_t> inputs, sums;
};

} // namespace occl::random
