#include "compiler/analysis/StepGraph.h"

#include "compiler/analysis/Dependences.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>
#include <optional>
#include <tuple>

namespace occl::analysis {

using inst::Connection;
using inst::Instruction;
using inst::Place;
using inst::PlaceKind;

static constexpr uint32_t kNoConnection = ~0u;

//===--- Network ---===//

namespace {

/// What decides which connection a transfer uses.
class Routes {
public:
  /// Source, channel, destinations.
  using Route = std::tuple<uint32_t, uint32_t, llvm::ArrayRef<uint32_t>>;

  explicit Routes(const Program &program) : entries(program.numTransfers) {
    // Nearly all transfers have one receiver, which is stored in place; the others' further
    // receivers are listed apart and sorted at the end.
    std::vector<std::pair<uint32_t, uint32_t>> further; // transfer and receiver, but the first
    for (uint32_t r = 0; r < program.ranks.size(); ++r)
      for (const Step &step : program.ranks[r].steps) {
        forEachMessage(step.instruction.sources, [&](const Place &place) {
          if (place.kind != PlaceKind::Transfer)
            return;
          Entry &entry = entries[place.index];
          if (entry.numReceivers++ == 0)
            entry.receiver = r;
          else
            further.push_back({place.index, r});
        });
        // The sending end says from where, and on which channel; without one of its own it is the
        // program's.
        forEachMessage(step.instruction.destinations, [&](const Place &place) {
          if (place.kind != PlaceKind::Transfer)
            return;
          Entry &entry = entries[place.index];
          entry.source = r;
          entry.channel =
              place.channel < 0 ? program.defaultChannel : static_cast<uint32_t>(place.channel);
        });
      }
    // Lists last, since the receivers of a transfer are met in any order.
    listReceivers(further);
  }

  Route operator[](uint32_t transfer) const {
    const Entry &entry = entries[transfer];
    const uint32_t *first = entry.numReceivers > 1 ? &lists[entry.receiver] : &entry.receiver;
    return {entry.source, entry.channel, llvm::ArrayRef(first, entry.numReceivers)};
  }

private:
  /// Of a transfer; together, because its ends are met at any time.
  struct Entry {
    uint32_t source = 0, channel = 0, numReceivers = 0;
    uint32_t receiver = 0; // of several: where they begin in `lists`
  };

  void listReceivers(std::vector<std::pair<uint32_t, uint32_t>> &further) {
    // By transfer, then by receiver: each list becomes a run behind the others, in ascending order
    // of ranks.
    llvm::sort(further);
    std::optional<uint32_t> last;
    for (auto [transfer, receiver] : further) {
      // The entry's one receiver becomes the place of the list, with that receiver as its first
      // element.
      if (last != transfer) {
        lists.push_back(entries[transfer].receiver);
        entries[transfer].receiver = static_cast<uint32_t>(lists.size() - 1);
        last = transfer;
      }
      lists.push_back(receiver);
    }
  }

  std::vector<Entry> entries;
  std::vector<uint32_t> lists; // of those with several receivers: in the order of the ranks
};

} // namespace

Network::Network(const Program &program) : connections(program.connections) {
  // A connection is a route: source, channel and destinations. Transfers with the same route share
  // one, in the program's order of transfers.
  Routes routes(program);
  llvm::DenseMap<Routes::Route, uint32_t> found;
  std::vector<Routes::Route> distinct;
  // What a rank sends goes mostly where it sent last.
  std::vector<uint32_t> lastOf(program.ranks.size(), kNoConnection);
  ofTransfer.reserve(program.numTransfers);
  for (uint32_t t = 0; t < program.numTransfers; ++t) {
    Routes::Route route = routes[t];
    // A transfer that a pass has merged away has no destinations and needs no connection.
    if (std::get<2>(route).empty()) {
      ofTransfer.push_back(kNoConnection);
      continue;
    }
    // Only if it goes elsewhere is the route looked up.
    uint32_t &last = lastOf[std::get<0>(route)];
    if (last == kNoConnection || distinct[last] != route) {
      auto [entry, isNew] = found.try_emplace(route, static_cast<uint32_t>(distinct.size()));
      if (isNew)
        distinct.push_back(route);
      last = entry->second;
    }
    ofTransfer.push_back(last);
  }
  // Connections are numbered by source, channel and destinations, not by the order in which they
  // were met: the plan then does not depend on how passes number transfers.
  std::vector<uint32_t> order(distinct.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](uint32_t a, uint32_t b) {
    auto [sourceA, channelA, destinationsA] = distinct[a];
    auto [sourceB, channelB, destinationsB] = distinct[b];
    return std::tie(sourceA, channelA) != std::tie(sourceB, channelB)
               ? std::tie(sourceA, channelA) < std::tie(sourceB, channelB)
               : std::lexicographical_compare(destinationsA.begin(), destinationsA.end(),
                                              destinationsB.begin(), destinationsB.end());
  });
  std::vector<uint32_t> position(distinct.size());
  for (uint32_t index : order) {
    auto [source, channel, destinations] = distinct[index];
    position[index] = static_cast<uint32_t>(connections.size());
    connections.push_back({source, channel, {destinations.begin(), destinations.end()}});
  }
  // From the number in order of appearance to the sorted one.
  for (uint32_t &connection : ofTransfer)
    if (connection != kNoConnection)
      connection = position[connection];
}

uint64_t durationOf(const Program &program, const Network &network, uint32_t rank,
                    const Instruction &instruction) {
  // A step takes as long as its thread block is busy, or as its slowest link takes for the data,
  // whichever is longer. In any unit; see StepWeights.
  const StepWeights &weights = program.weights;
  uint64_t own = weights.overhead + weights.workOf(instruction), slowest = 0;
  auto pass = [&](uint32_t from, uint32_t to) {
    uint64_t wire = weights.between(from, to).wire;
    slowest = std::max(slowest, instruction.count * wire);
  };
  auto connectionAt = [&](const Place &place) -> const Connection & {
    return network.connections[network.connectionOf(place)];
  };
  // Where receivers fetch (host), the wire's time is the receiver's; where senders push (GPU), it
  // is the sender's, who also stores a copy for each receiver.
  if (weights.fetched)
    forEachMessage(instruction.sources,
                   [&](const Place &place) { pass(connectionAt(place).source, rank); });
  else
    forEachMessage(instruction.destinations, [&](const Place &place) {
      const auto &receivers = connectionAt(place).destinations;
      // The first receiver's store is in the weight of the message itself.
      own += uint64_t{instruction.count} * weights.send * (receivers.size() - 1);
      for (uint32_t receiver : receivers)
        pass(rank, receiver);
    });
  return std::max(own, slowest);
}

std::vector<uint32_t> durationsOf(const Program &program, const Network &network) {
  std::vector<uint32_t> result;
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (const Step &step : program.ranks[r].steps)
      result.push_back(static_cast<uint32_t>(
          std::min<uint64_t>(durationOf(program, network, r, step.instruction), UINT32_MAX)));
  return result;
}

bool messagesKeepOrder(const Program &program, const Network &network) {
  // The sending side numbers the messages of each connection.
  std::vector<uint32_t> numberOf(program.numTransfers, 0), sent(network.connections.size(), 0);
  for (const Rank &rank : program.ranks)
    for (const Step &step : rank.steps)
      forEachMessage(step.instruction.destinations, [&](const Place &place) {
        if (place.kind == PlaceKind::Transfer)
          numberOf[place.index] = sent[network.connectionOf(place)]++;
      });
  // The receiving side must meet them in the same order: a connection is a FIFO, and out of order
  // the receiver would take another message.
  const std::vector<uint32_t> firstEnds = network.firstEnds();
  std::vector<uint32_t> received(firstEnds.back(), 0); // messages, by receiving end
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (const Step &step : program.ranks[r].steps)
      for (const Place &place : step.instruction.sources) {
        if (place.kind != PlaceKind::Transfer)
          continue;
        const uint32_t connection = network.connectionOf(place);
        if (numberOf[place.index] !=
            received[firstEnds[connection] + network.slotOf(connection, r)]++)
          return false;
      }
  return true;
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

/// Steps of a rank, of which the second waits for the first.
using Edges = std::vector<std::pair<uint32_t, uint32_t>>;

static Edges localEdges(const Program &program, uint32_t r, const Network &network,
                        MessageOrder order) {
  const Rank &rank = program.ranks[r];
  RankDependences dependences(program, rank);
  Edges edges;
  // The last step at an end of a connection: keyed by connection; sending and receiving ends lie
  // on different ranks.
  llvm::DenseMap<uint32_t, uint32_t> last;
  for (uint32_t i = 0; i < rank.steps.size(); ++i) {
    // Order by memory: on one rank, whichever thread blocks the steps get.
    for (uint32_t before : dependences.before(i))
      edges.push_back({before, i});
    // Order by messages: the steps at one end of a connection follow each other, if the program's
    // order of messages is to be kept.
    auto chain = [&](const Place &place) {
      auto [entry, first] = last.try_emplace(network.connectionOf(place), i);
      if (!first && entry->second != i)
        edges.push_back({entry->second, i});
      entry->second = i;
    };
    if (order == MessageOrder::Free)
      continue;
    forEachMessage(rank.steps[i].instruction.sources, chain);
    forEachMessage(rank.steps[i].instruction.destinations, chain);
  }
  return edges;
}

void StepGraph::addLocalEdges(const Program &program, const Network &network, MessageOrder order) {
  // Edges are stored in compressed rows: counted, then added up to offsets, then filled. Ranks own
  // disjoint rows, so that they work side by side.
  std::vector<Edges> edges(program.ranks.size());
  successorStarts.assign(numSteps() + 1, 0);
  predecessorCounts.assign(numSteps(), 0);
  forEachRankAtOnce(program, [&](uint32_t r) {
    edges[r] = localEdges(program, r, network, order);
    for (auto [from, to] : edges[r]) {
      // The count goes into the entry behind the step's own, as the sum over what precedes it will
      // be its begin.
      ++successorStarts[globalStep(r, from) + 1];
      ++predecessorCounts[globalStep(r, to)];
    }
  });
  for (uint32_t i = 0; i < numSteps(); ++i)
    successorStarts[i + 1] += successorStarts[i];
  successors.resize(successorStarts.back());
  // Second pass: each step's row is filled from its begin on.
  forEachRankAtOnce(program, [&](uint32_t r) {
    auto begin = successorStarts.begin() + firstStep[r];
    std::vector<uint32_t> next(begin, begin + program.ranks[r].steps.size());
    for (auto [from, to] : edges[r])
      successors[next[from]++] = globalStep(r, to);
  });
}

void StepGraph::Lists::reserve(std::vector<uint32_t> counts) {
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  values.resize(counts.back());
  starts = std::move(counts);
}

/// What is sent and received on a connection, in the order of the program: global steps, and
/// transfers.
struct StepGraph::Ends {
  std::vector<uint32_t> senders, sentTransfers;
  std::vector<std::vector<uint32_t>> receivers, receivedTransfers; // of each destination
};

void StepGraph::addMessages(const Program &program, const Network &network) {
  // The ends of each connection in the order of steps: who sends its m-th message, and who receives
  // it at each destination.
  std::vector<Ends> ends(network.connections.size());
  for (auto [connection, end] : llvm::zip(network.connections, ends)) {
    end.receivers.resize(connection.destinations.size());
    end.receivedTransfers.resize(connection.destinations.size());
  }
  std::vector<uint32_t> numSent(numSteps() + 1, 0), numReceived(numSteps() + 1, 0);
  // Once thread blocks are assigned, places name connections instead of transfers, and there is
  // nothing more to compare.
  auto transferOf = [](const Place &place) {
    return place.kind == PlaceKind::Transfer ? place.index : ~0u;
  };
  // In the order of steps within a rank, which is the order of messages at each end.
  for (uint32_t r = 0; r < program.ranks.size(); ++r)
    for (uint32_t i = 0; i < program.ranks[r].steps.size(); ++i) {
      const inst::Instruction &instruction = program.ranks[r].steps[i].instruction;
      const uint32_t step = globalStep(r, i);
      forEachMessage(instruction.destinations, [&](const Place &place) {
        Ends &end = ends[network.connectionOf(place)];
        end.senders.push_back(step);
        end.sentTransfers.push_back(transferOf(place));
        ++numSent[step + 1];
      });
      forEachMessage(instruction.sources, [&](const Place &place) {
        uint32_t connection = network.connectionOf(place);
        const uint32_t slot = network.slotOf(connection, r);
        ends[connection].receivers[slot].push_back(step);
        ends[connection].receivedTransfers[slot].push_back(transferOf(place));
        ++numReceived[step + 1];
      });
    }
  // Message m is the same transfer at both ends, or nothing can be said about who waits for whom.
  for (const Ends &end : ends)
    consistent &= llvm::all_of(end.receivedTransfers,
                               [&](const auto &received) { return received == end.sentTransfers; });
  sentBy.reserve(std::move(numSent));
  receivedBy.reserve(std::move(numReceived));
  if (consistent)
    connectEnds(ends);
}

void StepGraph::connectEnds(llvm::ArrayRef<Ends> ends) {
  // Messages are numbered connection by connection; senders and receivers get lists of their
  // numbers, in rows that were counted before.
  messages.reserve(sentBy.values.size());
  receivers.reserve(receivedBy.values.size());
  std::vector<uint32_t> nextSent = sentBy.starts, nextReceived = receivedBy.starts;
  for (auto [connection, end] : llvm::enumerate(ends))
    for (size_t m = 0; m < end.senders.size(); ++m) {
      const auto index = static_cast<uint32_t>(messages.size());
      messages.push_back({static_cast<uint32_t>(connection), end.senders[m],
                          static_cast<uint32_t>(receivers.size()),
                          static_cast<uint32_t>(end.receivers.size())});
      sentBy.values[nextSent[end.senders[m]]++] = index;
      for (const auto &steps : end.receivers) {
        receivers.push_back(steps[m]);
        receivedBy.values[nextReceived[steps[m]]++] = index;
      }
    }
}

template <typename Function> void StepGraph::forEachReceiver(uint32_t step, Function fn) const {
  for (uint32_t message : sent(step))
    llvm::for_each(receiversOf(messages[message]), fn);
}

std::vector<uint32_t> StepGraph::topologicalOrder() const {
  // Kahn's algorithm: a step is ready when all that it waits for, on its rank and by messages, has
  // been taken.
  std::vector<uint32_t> waitsFor = predecessorCounts;
  for (uint32_t receiver : receivers)
    ++waitsFor[receiver];
  std::vector<uint32_t> order;
  order.reserve(numSteps());
  for (uint32_t step = 0; step < numSteps(); ++step)
    if (waitsFor[step] == 0)
      order.push_back(step);
  // If there is a cycle, its steps are never released, and the order is shorter than the program.
  for (size_t next = 0; next < order.size(); ++next) {
    auto release = [&](uint32_t successor) {
      if (--waitsFor[successor] == 0)
        order.push_back(successor);
    };
    llvm::for_each(localSuccessors(order[next]), release);
    forEachReceiver(order[next], release);
  }
  return order;
}

/// A sum of lengths; very long paths are all equally long.
static uint32_t extend(uint32_t length, uint32_t by) { return llvm::SaturatingAdd(length, by); }

std::optional<std::vector<uint32_t>> StepGraph::heights(llvm::ArrayRef<uint32_t> durations,
                                                        const StepWeights &weights) const {
  // Backwards: everything behind a step has its height already.
  std::vector<uint32_t> order = topologicalOrder();
  // Steps in a cycle have no height.
  if (order.size() != numSteps())
    return std::nullopt;
  std::vector<uint32_t> heights(numSteps());
  for (uint32_t step : llvm::reverse(order)) {
    // The longest of what comes behind: on the rank at once, at receivers after the message's
    // latency.
    uint32_t behind = 0;
    for (uint32_t successor : localSuccessors(step))
      behind = std::max(behind, heights[successor]);
    forEachReceiver(step, [&](uint32_t receiver) {
      uint32_t latency = durations.empty() ? 0 : latencyOf(weights, step, receiver);
      behind = std::max(behind, extend(heights[receiver], latency));
    });
    // Without durations each step counts 1: the height is the number of steps that are still to
    // come.
    heights[step] = extend(behind, durations.empty() ? 1 : durations[step]);
  }
  return heights;
}

std::vector<uint32_t> StepGraph::depths(llvm::ArrayRef<uint32_t> durations,
                                        const StepWeights &weights) const {
  // As heights, forwards: when a step can begin at the earliest if nothing but its predecessors
  // holds it up.
  std::vector<uint32_t> depths(numSteps(), 0);
  for (uint32_t step : topologicalOrder()) {
    uint32_t end = extend(depths[step], durations[step]);
    for (uint32_t successor : localSuccessors(step))
      depths[successor] = std::max(depths[successor], end);
    forEachReceiver(step, [&](uint32_t receiver) {
      depths[receiver] =
          std::max(depths[receiver], extend(end, latencyOf(weights, step, receiver)));
    });
  }
  return depths;
}

} // namespace occl::analysis
