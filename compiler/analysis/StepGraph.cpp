#include "compiler/analysis/StepGraph.h"

#include "compiler/analysis/Dependences.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <tuple>

namespace occl::analysis {

using inst::Connection;
using inst::Place;
using inst::PlaceKind;

//===--- Network ---===//

namespace {

/// Everything that decides which connection a transfer uses.
struct Route {
  uint32_t source = 0;
  int32_t channel = -1;
  llvm::SmallVector<uint32_t, 2> destinations;
};

std::vector<Route> routesOf(const Program &program) {
  std::vector<Route> routes(program.numTransfers);
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (const Step &step : program.ranks[r].steps) {
      forEachMessage(step.instruction.destinations, [&](const Place &place) {
        if (place.kind != PlaceKind::Transfer)
          return;
        routes[place.index].source = r;
        routes[place.index].channel = place.channel;
      });
      forEachMessage(step.instruction.sources, [&](const Place &place) {
        if (place.kind == PlaceKind::Transfer)
          routes[place.index].destinations.push_back(r);
      });
    }
  return routes;
}

} // namespace

Network::Network(const Program &program) : connections(program.connections) {
  std::vector<Route> routes = routesOf(program);
  using Key = std::tuple<uint32_t, uint32_t, llvm::SmallVector<uint32_t, 2>>;
  std::map<Key, uint32_t> found;
  std::vector<std::map<Key, uint32_t>::iterator> entries;
  for (const Route &route : routes) {
    uint32_t channel =
        route.channel < 0 ? program.defaultChannel : static_cast<uint32_t>(route.channel);
    // A transfer that a pass has merged away has no destinations and needs no connection.
    entries.push_back(route.destinations.empty()
                          ? found.end()
                          : found.try_emplace({route.source, channel, route.destinations}).first);
  }
  for (auto &[key, index] : found) {
    index = static_cast<uint32_t>(connections.size());
    connections.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  for (auto entry : entries)
    ofTransfer.push_back(entry == found.end() ? ~0u : entry->second);
}

//===--- StepGraph ---===//

StepGraph::StepGraph(const Program &program, const Network &network, MessageOrder order) {
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    rankOfStep.insert(rankOfStep.end(), program.ranks[r].steps.size(), r);
    firstStep.push_back(static_cast<uint32_t>(rankOfStep.size()));
  }
  addLocalEdges(program, network, order);
  addMessages(program, network);
}

void StepGraph::addLocalEdges(const Program &program, const Network &network, MessageOrder order) {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const Rank &rank = program.ranks[r];
    RankDependences dependences(program, rank);
    // The last step at an end of a connection: keyed by connection; sending and receiving ends lie
    // on different ranks.
    llvm::DenseMap<uint32_t, uint32_t> last;
    for (uint32_t i = 0; i < rank.steps.size(); ++i) {
      for (uint32_t before : dependences.before(i))
        edges.push_back({globalStep(r, before), globalStep(r, i)});
      auto chain = [&](const Place &place) {
        auto [entry, first] = last.try_emplace(network.connectionOf(place), i);
        if (!first && entry->second != i)
          edges.push_back({globalStep(r, entry->second), globalStep(r, i)});
        entry->second = i;
      };
      if (order == MessageOrder::Free)
        continue;
      forEachMessage(rank.steps[i].instruction.sources, chain);
      forEachMessage(rank.steps[i].instruction.destinations, chain);
    }
  }
  successorStarts.assign(numSteps() + 1, 0);
  predecessorCounts.assign(numSteps(), 0);
  for (auto [from, to] : edges) {
    ++successorStarts[from + 1];
    ++predecessorCounts[to];
  }
  for (uint32_t i = 0; i < numSteps(); ++i)
    successorStarts[i + 1] += successorStarts[i];
  successors.resize(edges.size());
  std::vector<uint32_t> next(successorStarts.begin(), successorStarts.end() - 1);
  for (auto [from, to] : edges)
    successors[next[from]++] = to;
}

void StepGraph::addMessages(const Program &program, const Network &network) {
  struct Ends {
    std::vector<uint32_t> senders, sentTransfers;
    std::vector<std::vector<uint32_t>> receivers, receivedTransfers;
  };
  std::vector<Ends> ends(network.connections.size());
  for (auto [connection, end] : llvm::zip(network.connections, ends)) {
    end.receivers.resize(connection.destinations.size());
    end.receivedTransfers.resize(connection.destinations.size());
  }
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i) {
      const inst::Instruction &instruction = program.ranks[r].steps[i].instruction;
      forEachMessage(instruction.destinations, [&](const Place &place) {
        Ends &end = ends[network.connectionOf(place)];
        end.senders.push_back(globalStep(r, i));
        end.sentTransfers.push_back(place.kind == PlaceKind::Transfer ? place.index : ~0u);
      });
      forEachMessage(instruction.sources, [&](const Place &place) {
        uint32_t connection = network.connectionOf(place);
        const auto &destinations = network.connections[connection].destinations;
        size_t slot = llvm::lower_bound(destinations, r) - destinations.begin();
        ends[connection].receivers[slot].push_back(globalStep(r, i));
        ends[connection].receivedTransfers[slot].push_back(
            place.kind == PlaceKind::Transfer ? place.index : ~0u);
      });
    }
  sentBy.resize(numSteps());
  receivedBy.resize(numSteps());
  for (auto [connection, end] : llvm::enumerate(ends)) {
    for (const auto &received : end.receivedTransfers)
      consistent &= received == end.sentTransfers;
    if (!consistent)
      return;
    for (size_t m = 0; m < end.senders.size(); ++m) {
      uint32_t index = static_cast<uint32_t>(messages.size());
      Message &message = messages.emplace_back();
      message.connection = static_cast<uint32_t>(connection);
      message.sender = end.senders[m];
      sentBy[message.sender].push_back(index);
      for (const auto &receivers : end.receivers) {
        message.receivers.push_back(receivers[m]);
        receivedBy[receivers[m]].push_back(index);
      }
    }
  }
}

template <typename Function> void StepGraph::forEachReceiver(uint32_t step, Function fn) const {
  for (uint32_t message : sentBy[step])
    for (uint32_t receiver : messages[message].receivers)
      fn(receiver);
}

std::optional<std::vector<uint32_t>> StepGraph::heights() const {
  std::vector<uint32_t> waitsFor = predecessorCounts;
  for (const Message &message : messages)
    for (uint32_t receiver : message.receivers)
      ++waitsFor[receiver];
  std::vector<uint32_t> order;
  order.reserve(numSteps());
  for (uint32_t step = 0; step < numSteps(); ++step)
    if (waitsFor[step] == 0)
      order.push_back(step);
  for (size_t next = 0; next < order.size(); ++next) {
    auto release = [&](uint32_t successor) {
      if (--waitsFor[successor] == 0)
        order.push_back(successor);
    };
    llvm::for_each(localSuccessors(order[next]), release);
    forEachReceiver(order[next], release);
  }
  if (order.size() != numSteps())
    return std::nullopt;
  std::vector<uint32_t> heights(numSteps(), 1);
  for (uint32_t step : llvm::reverse(order)) {
    auto raise = [&](uint32_t successor) {
      heights[step] = std::max(heights[step], heights[successor] + 1);
    };
    llvm::for_each(localSuccessors(step), raise);
    forEachReceiver(step, raise);
  }
  return heights;
}

} // namespace occl::analysis
