#include "compiler/interchange/synthesis/Synthesis.h"

#include "plan/collectives/promise.h"
#include "plan/model/limits.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <numeric>

namespace occl::interchange::synthesis {

using frontend::BufferKind;
using frontend::ChunkRange;
using frontend::DiagnosticCode;
using frontend::ProgramInfo;
using frontend::SourceRange;

namespace {

constexpr uint64_t kMaxStates = 1u << 22; // pairs of rank and address

/// What a rank has of an address: contributions, by number of the chunk, and where.
struct State {
  std::vector<uint32_t> chunks; // ascending
  BufferKind buffer = BufferKind::Input;
  uint32_t index = 0;
};

class ChunkLowering {
public:
  ChunkLowering(const Algorithm &algorithm, frontend::FileId file, frontend::ChunkSink &sink,
                frontend::DiagnosticEngine &diagnostics)
      : algorithm(algorithm), file(file), sink(sink), diagnostics(diagnostics) {}

  std::optional<ProgramInfo> run() {
    // Buffers first, then step by step, then the comparison with what was promised.
    if (!placeChunks())
      return std::nullopt;
    for (const std::vector<Send> &step : algorithm.steps)
      if (!emitStep(step))
        return std::nullopt;
    if (!finish())
      return std::nullopt;
    describe();
    return std::move(info);
  }

private:
  SourceRange whole() const { return {file, 0, 1}; }

  bool fail(DiagnosticCode code, SourceRange place, const std::string &message) {
    diagnostics.error(code, place, message);
    return false;
  }

  SourceRange placeOf(const Chunk &chunk) const {
    return placeInJson(algorithm.text, file,
                       "collective.chunks[" + std::to_string(chunk.number) + "]");
  }

  /// Addresses that a rank has at the beginning are its input, in order; at the end, its output.
  bool placeChunks() {
    // Addresses of the file may be any numbers; here they are numbered through.
    std::map<uint32_t, uint32_t> numbers;
    for (const Chunk &chunk : algorithm.chunks)
      numbers.try_emplace(chunk.address);
    for (auto &[address, number] : numbers)
      number = numAddresses++;
    // A state for each address of each rank: what it holds and where.
    if (uint64_t{numAddresses} * algorithm.numRanks > kMaxStates)
      return fail(DiagnosticCode::ImportTooLarge, whole(),
                  std::to_string(numAddresses) + " addresses on " +
                      std::to_string(algorithm.numRanks) + " ranks are too many");
    addressNumbers = std::move(numbers);
    states.resize(size_t{numAddresses} * algorithm.numRanks);
    wanted.resize(states.size());
    for (uint32_t c = 0; c < algorithm.chunks.size(); ++c) {
      // Each chunk starts on one rank and is wanted on some.
      const Chunk &chunk = algorithm.chunks[c];
      uint32_t address = addressNumbers.at(chunk.address);
      if (chunk.before.size() != 1)
        return fail(DiagnosticCode::SynthesisUnsupported, placeOf(chunk),
                    "chunk " + std::to_string(c) + " starts on " +
                        std::to_string(chunk.before.size()) +
                        " ranks; each must start on exactly one");
      State &state = at(chunk.before[0], address);
      if (!state.chunks.empty())
        return fail(DiagnosticCode::SynthesisUnsupported, placeOf(chunk),
                    "rank " + std::to_string(chunk.before[0]) +
                        " starts with two chunks at address " + std::to_string(chunk.address));
      state.chunks = {c};
      for (uint32_t rank : chunk.after)
        wanted[rank * size_t{numAddresses} + address].push_back(c);
    }
    numberBuffers();
    return true;
  }

  void numberBuffers() {
    // Inputs in the order of addresses on each rank, outputs likewise: so that standard collectives
    // have their usual places.
    info.numRanks = algorithm.numRanks;
    info.inputChunks.assign(info.numRanks, 0);
    info.outputChunks.assign(info.numRanks, 0);
    scratchSizes.assign(info.numRanks, 0);
    outputIndex.assign(states.size(), kNone);
    for (uint32_t rank = 0; rank < info.numRanks; ++rank)
      for (uint32_t address = 0; address < numAddresses; ++address) {
        State &state = at(rank, address);
        if (!state.chunks.empty())
          state.index = info.inputChunks[rank]++;
        size_t key = rank * size_t{numAddresses} + address;
        if (!wanted[key].empty())
          outputIndex[key] = info.outputChunks[rank]++;
      }
    // The states at the beginning are the inputs.
    inputIndex = states;
  }

  State &at(uint32_t rank, uint32_t address) {
    return states[rank * size_t{numAddresses} + address];
  }

  /// Sends whose target is sent on in the same step go through scratch: the old value goes on.
  bool emitStep(const std::vector<Send> &step) {
    // All sends of a step happen at once: what a rank sends is what it had before the step,
    // whatever arrives meanwhile.
    std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> before; // of sources
    for (const Send &send : step) {
      auto number = addressNumbers.find(send.address);
      if (number == addressNumbers.end())
        return fail(DiagnosticCode::JsonWrongMember, send.place,
                    "no chunk has address " + std::to_string(send.address));
      const State &source = at(send.source, number->second);
      if (source.chunks.empty())
        return fail(DiagnosticCode::SynthesisWrong, send.place,
                    "rank " + std::to_string(send.source) + " sends address " +
                        std::to_string(send.address) + ", which it does not have in this step");
      before[{send.source, number->second}] = source.chunks;
    }
    struct Delayed {
      const Send *send;
      uint32_t temporary;
    };
    std::vector<Delayed> delayed;
    for (const Send &send : step) {
      uint32_t address = addressNumbers.at(send.address);
      const State source = at(send.source, address);
      frontend::ChunkHandle value =
          sink.read({send.source, source.buffer, source.index, 1}, send.place);
      // The target's own value is sent on in this step, so what arrives is put aside first.
      if (before.contains({send.target, address})) {
        uint32_t temporary = scratchSizes[send.target]++;
        sink.copy(value, {send.target, BufferKind::Scratch, temporary, 1}, send.place);
        delayed.push_back({&send, temporary});
      } else if (!arrive(send, address, before[{send.source, address}], value)) {
        return false;
      }
    }
    // When everything of the step has been read.
    for (const Delayed &one : delayed) {
      uint32_t address = addressNumbers.at(one.send->address);
      frontend::ChunkHandle value =
          sink.read({one.send->target, BufferKind::Scratch, one.temporary, 1}, one.send->place);
      if (!arrive(*one.send, address, before[{one.send->source, address}], value))
        return false;
    }
    return true;
  }

  /// New contributions are added, a larger sum replaces a smaller one, and what is there already
  /// changes nothing.
  bool arrive(const Send &send, uint32_t address, const std::vector<uint32_t> &chunks,
              frontend::ChunkHandle value) {
    State &target = at(send.target, address);
    // Sets of contributions: the union tells whether something is new.
    std::vector<uint32_t> all;
    std::set_union(target.chunks.begin(), target.chunks.end(), chunks.begin(), chunks.end(),
                   std::back_inserter(all));
    if (all.size() == target.chunks.size())
      return true;
    // Either nothing is in common, and both are added; or the new one contains the old one, and
    // replaces it; anything else would count some twice.
    bool adds = all.size() == target.chunks.size() + chunks.size() && !target.chunks.empty();
    if (!adds && all.size() != chunks.size())
      return fail(DiagnosticCode::SynthesisWrong, send.place,
                  "what rank " + std::to_string(send.target) + " gets and what it has of address " +
                      std::to_string(send.address) +
                      " have some contributions in common and others not: they would count twice");
    ChunkRange old{send.target, target.buffer, target.index, 1};
    // Never where the input lies, which must stay.
    ChunkRange fresh = locate(send.target, address);
    if (adds) {
      frontend::ChunkHandle operands[] = {sink.read(old, send.place), value};
      sink.reduce(operands, fresh, send.place);
    } else {
      sink.copy(value, fresh, send.place);
    }
    target = {std::move(all), fresh.buffer, fresh.index};
    return true;
  }

  /// Where a rank keeps what comes: at its end if it has one, else in scratch. Never in the input.
  ChunkRange locate(uint32_t rank, uint32_t address) {
    // Outputs may be built up in place; scratch is used again if the value lies there.
    size_t key = rank * size_t{numAddresses} + address;
    const State &state = states[key];
    if (outputIndex[key] != kNone)
      return {rank, BufferKind::Output, outputIndex[key], 1};
    if (!state.chunks.empty() && state.buffer == BufferKind::Scratch)
      return {rank, BufferKind::Scratch, state.index, 1};
    return {rank, BufferKind::Scratch, scratchSizes[rank]++, 1};
  }

  bool finish() {
    // At the end every wanted chunk has to be the sum of exactly the chunks that are promised for
    // it.
    for (uint32_t rank = 0; rank < info.numRanks; ++rank)
      for (uint32_t address = 0; address < numAddresses; ++address) {
        size_t key = rank * size_t{numAddresses} + address;
        if (wanted[key].empty())
          continue;
        State &state = states[key];
        if (state.chunks != wanted[key])
          return fail(DiagnosticCode::SynthesisWrong,
                      placeInJson(algorithm.text, file, "collective.chunks"),
                      "rank " + std::to_string(rank) + " has " +
                          std::to_string(state.chunks.size()) + " contributions to output chunk " +
                          std::to_string(outputIndex[key]) + " at the end, but the collective '" +
                          algorithm.collective + "' promises " +
                          std::to_string(wanted[key].size()) + " (or others)");
        // A chunk that was never sent is still in the input.
        if (state.buffer == BufferKind::Input) {
          ChunkRange source{rank, BufferKind::Input, state.index, 1};
          sink.copy(sink.read(source, whole()), {rank, BufferKind::Output, outputIndex[key], 1},
                    whole());
        }
      }
    return true;
  }

  void describe() {
    // What the program says of itself; the collective's name in the file is a text such as
    // "Allgather(n=4)".
    info.name = algorithm.name;
    info.scratchChunks.assign(scratchSizes.begin(), scratchSizes.end());
    info.parameters = {{"ranks", info.numRanks}};
    info.inPlaceOffsets.assign(info.numRanks, 0);
    std::string name = algorithm.collective.substr(0, algorithm.collective.find_first_of("(,"));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::erase(name, '_');
    info.isStandard = isStandard(name);
    // A name that means something else here would be proved against the wrong promise.
    bool isTaken = plan::standardCollectiveOf(name).has_value() && !info.isStandard;
    info.collective = name.empty() || isTaken ? "custom" : name;
    info.inPlace = info.isStandard && name != "alltoall";
    if (!info.isStandard)
      describeOwn();
  }

  /// Whether the chunks' places are those of the standard collective of that name.
  bool isStandard(const std::string &name) {
    // A model of the standard collective with the sizes that were found, compared with sizes and
    // contributions.
    std::optional<plan::StandardCollective> collective = plan::standardCollectiveOf(name);
    if (!collective)
      return false;
    plan::Plan model;
    model.numRanks = info.numRanks;
    uint32_t largest = 0;
    for (uint32_t r = 0; r < info.numRanks; ++r)
      largest = std::max({largest, info.inputChunks[r], info.outputChunks[r]});
    model.partChunks = std::max(1u, hasManyParts(*collective) ? largest / info.numRanks : largest);
    // The root is the rank that has what only a root has.
    for (uint32_t r = 0; r < info.numRanks && hasRoot(*collective); ++r)
      if ((endsAtRoot(*collective) ? info.outputChunks[r] : info.inputChunks[r]) > 0)
        model.root = r;
    for (uint32_t r = 0; r < info.numRanks; ++r) {
      const int64_t offset = inPlaceOffset(*collective, partsOf(model), r);
      model.ranks.push_back({.inputChunks = info.inputChunks[r],
                             .outputChunks = info.outputChunks[r],
                             .inPlaceOffset = static_cast<int32_t>(offset)});
    }
    if (!plan::checkSizes(model, *collective).empty() || !meetsGoals(model, *collective))
      return false;
    // It is the standard one, with its offsets in place.
    info.partChunks = model.partChunks;
    info.root = model.root;
    for (uint32_t r = 0; r < info.numRanks; ++r)
      info.inPlaceOffsets[r] = model.ranks[r].inPlaceOffset;
    return true;
  }

  bool meetsGoals(const plan::Plan &model, plan::StandardCollective collective) {
    // Every output holds what the collective's definition says.
    for (size_t key = 0; key < states.size(); ++key) {
      if (outputIndex[key] == kNone)
        continue;
      auto rank = static_cast<uint32_t>(key / numAddresses);
      auto goal = plan::goalOf(model, collective, rank, outputIndex[key]);
      std::vector<plan::Contribution> has = contributions(key);
      if (!goal || has.size() != (goal->ofAllRanks ? info.numRanks : 1))
        return false;
      for (const plan::Contribution &one : has)
        if (one.chunk != goal->index || (!goal->ofAllRanks && one.rank != goal->rank))
          return false;
    }
    return true;
  }

  std::vector<plan::Contribution> contributions(size_t key) const {
    std::vector<plan::Contribution> result;
    for (uint32_t c : wanted[key]) {
      uint32_t rank = algorithm.chunks[c].before[0];
      result.push_back({rank, inputIndex[rank * size_t{numAddresses} + key % numAddresses].index});
    }
    return result;
  }

  void describeOwn() {
    // A collective of its own: a part is what all buffers are multiples of, and each output chunk
    // is a requirement.
    uint32_t part = 0;
    for (uint32_t r = 0; r < info.numRanks; ++r)
      part = std::gcd(std::gcd(part, info.inputChunks[r]), info.outputChunks[r]);
    info.partChunks = std::max(part, 1u);
    for (size_t key = 0; key < states.size(); ++key) {
      if (outputIndex[key] == kNone)
        continue;
      std::vector<plan::Contribution> has = contributions(key);
      for (uint64_t number : {uint64_t{key / numAddresses}, uint64_t{outputIndex[key]}, uint64_t{1},
                              uint64_t{has.size()}})
        info.requirements.push_back(static_cast<int32_t>(number));
      for (const plan::Contribution &one : has) {
        info.requirements.push_back(static_cast<int32_t>(one.rank));
        info.requirements.push_back(static_cast<int32_t>(one.chunk));
      }
    }
  }

  static constexpr uint32_t kNone = ~0u;

  const Algorithm &algorithm;
  frontend::FileId file;
  frontend::ChunkSink &sink;
  frontend::DiagnosticEngine &diagnostics;
  ProgramInfo info;
  std::map<uint32_t, uint32_t> addressNumbers; // addresses, numbered through in order
  uint32_t numAddresses = 0;
  // Of each rank and address: rank * numAddresses + address.
  std::vector<State> states, inputIndex;
  std::vector<std::vector<uint32_t>> wanted;
  std::vector<uint32_t> outputIndex;
  std::vector<uint32_t> scratchSizes; // of each rank
};

} // namespace

std::optional<ProgramInfo> emit(const Algorithm &algorithm, frontend::FileId file,
                                frontend::ChunkSink &sink,
                                frontend::DiagnosticEngine &diagnostics) {
  return ChunkLowering(algorithm, file, sink, diagnostics).run();
}

} // namespace occl::interchange::synthesis
