#include "compiler/driver/Tactics.h"

#include <algorithm>
#include <utility>

namespace occl::driver {

namespace {

const Tactics kUsual;

/// A dimension whose settings addVariants(current, result) appends.
template <typename Function> Dimension combine(Function addVariants) {
  return [addVariants](const Tactics &current) {
    std::vector<Tactics> result;
    addVariants(current, result);
    return result;
  };
}

/// What one instruction receives, or sends to several ranks.
Dimension concentration(const Tactics &base) {
  return combine([base](const Tactics &current, std::vector<Tactics> &result) {
    for (bool foldArrivals : {true, false})
      for (uint32_t fanOut : {kUsual.maxFanOut, 1u})
        for (bool multicast : {true, false}) {
          Tactics &tactics = result.emplace_back(current);
          tactics.foldArrivals = foldArrivals && base.foldArrivals;
          tactics.maxFanOut = std::min(fanOut, base.maxFanOut);
          tactics.multicast = multicast && base.multicast;
        }
  });
}

/// Whether neighbours are joined, and where local instructions go.
Dimension neighbours(const PipelineOptions &base) {
  return combine([base](const Tactics &current, std::vector<Tactics> &result) {
    for (auto [messages, local] : {std::pair(true, true), {true, false}, {false, false}})
      for (bool spreadLocal : {false, true}) {
        Tactics &tactics = result.emplace_back(current);
        tactics.aggregate = messages && base.aggregate;
        tactics.aggregateLocal = base.aggregateLocal.value_or(local);
        tactics.spreadLocal = base.spreadLocal.value_or(spreadLocal);
      }
  });
}

/// All values of one field.
template <typename Field, typename Value>
Dimension settings(Field field, const std::vector<Value> &values) {
  return combine([field, values](const Tactics &current, std::vector<Tactics> &result) {
    for (const Value &value : values)
      (result.emplace_back(current).*field) = value;
  });
}

} // namespace

Tactics Tactics::of(const PipelineOptions &options) {
  Tactics tactics;
#define OCCL_TACTIC_SWITCH(member, name, usual, help) tactics.member = options.member;
#define OCCL_TACTIC_EITHER(member, name, effective, yes, no) tactics.member = options.effective();
#define OCCL_TACTIC_NUMBER(member, name, usual, least, most, help) tactics.member = options.member;
#define OCCL_TACTIC_WORD(member, name, usual, words, help) tactics.member = options.member;
#include "compiler/driver/PipelineOptions.def"
  return tactics;
}

void Tactics::applyTo(PipelineOptions &options) const {
#define OCCL_TACTIC_SWITCH(member, name, usual, help) options.member = member;
#define OCCL_TACTIC_EITHER(member, name, effective, yes, no) options.member = member;
#define OCCL_TACTIC_NUMBER(member, name, usual, least, most, help) options.member = member;
#define OCCL_TACTIC_WORD(member, name, usual, words, help) options.member = member;
#include "compiler/driver/PipelineOptions.def"
}

Tactics Tactics::staged() const {
  Tactics tactics = *this;
  tactics.foldArrivals = tactics.aggregateLocal = tactics.multicast = false;
  tactics.maxFanOut = 1;
  tactics.spreadLocal = tactics.shareChannels = true;
  return tactics;
}

Tactics Tactics::spread() const {
  Tactics tactics = *this;
  tactics.aggregateLocal = false;
  tactics.spreadLocal = true;
  return tactics;
}

std::string Tactics::text(const Tactics &usual) const {
  Tactics said = *this;
  if (!aggregate) // then nothing is joined
    said.aggregateLocal = usual.aggregateLocal;
  std::string text;
  auto add = [&](bool isUnusual, const std::string &option) {
    if (isUnusual)
      text += (text.empty() ? "--" : " --") + option;
  };
#define OCCL_TACTIC_SWITCH(member, name, usually, help)                                            \
  add(said.member != usual.member, (usually) ? "no-" name : (name));
#define OCCL_TACTIC_EITHER(member, name, effective, yes, no)                                       \
  add(said.member != usual.member, said.member ? (name) : "no-" name);
#define OCCL_TACTIC_NUMBER(member, name, usually, least, most, help)                               \
  add(said.member != usual.member, name " " + std::to_string(said.member));
#define OCCL_TACTIC_WORD(member, name, usually, words, help)                                       \
  add(said.member != usual.member, name " " + said.member);
#include "compiler/driver/PipelineOptions.def"
  return text;
}

std::vector<Dimension> searchSpace(const PipelineOptions &options) {
  const Tactics base = Tactics::of(options);
  std::vector<Dimension> dimensions;
  if (!base.shareChannels && options.instances > 1)
    dimensions.push_back(settings<bool Tactics::*, bool>(&Tactics::shareChannels, {false, true}));
  dimensions.push_back(concentration(base));
  dimensions.push_back(neighbours(options));
  if (options.maxThreadBlocks < 2)
    return dimensions;
  if (base.layout == kUsual.layout)
    dimensions.push_back(settings<std::string Tactics::*, std::string>(
        &Tactics::layout, {"auto", "balanced", "phases", "peers", "earliest"}));
  std::vector<uint32_t> numbers{0};
  const uint32_t most = std::min(options.maxThreadBlocks, options.maxChannels);
  for (uint32_t number = 1; number < most; number *= 2)
    numbers.push_back(number);
  numbers.push_back(most);
  if (base.colors == kUsual.colors)
    dimensions.push_back(settings<uint32_t Tactics::*, uint32_t>(&Tactics::colors, numbers));
  return dimensions;
}

} // namespace occl::driver
