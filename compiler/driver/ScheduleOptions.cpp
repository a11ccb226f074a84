#include "compiler/driver/ScheduleOptions.h"

#include <algorithm>
#include <utility>

namespace occl::driver {

namespace {

const ScheduleOptions kUsual;

/// A dimension whose settings addVariants(current, result) appends.
template <typename Function> Dimension combine(Function addVariants) {
  return [addVariants](const ScheduleOptions &current) {
    std::vector<ScheduleOptions> result;
    addVariants(current, result);
    return result;
  };
}

/// What one instruction receives, or sends to several ranks.
Dimension concentration(const ScheduleOptions &base) {
  return combine([base](const ScheduleOptions &current, std::vector<ScheduleOptions> &result) {
    // Together, since they are one question: how much one instruction may do at once. What the user
    // has ruled out stays so.
    for (bool foldArrivals : {true, false})
      for (uint32_t fanOut : {kUsual.maxFanOut, 1u})
        for (bool multicast : {true, false}) {
          ScheduleOptions &schedule = result.emplace_back(current);
          schedule.foldArrivals = foldArrivals && base.foldArrivals;
          schedule.maxFanOut = std::min(fanOut, base.maxFanOut);
          schedule.multicast = multicast && base.multicast;
        }
  });
}

/// Whether neighbours are joined, and where local instructions go.
Dimension neighbours(const PipelineOptions &base) {
  return combine([base](const ScheduleOptions &current, std::vector<ScheduleOptions> &result) {
    // Three of the four combinations: local ones alone are never joined without messages.
    for (auto [messages, local] : {std::pair(true, true), {true, false}, {false, false}})
      for (bool spreadLocal : {false, true}) {
        ScheduleOptions &schedule = result.emplace_back(current);
        schedule.aggregate = messages && base.aggregate;
        schedule.aggregateLocal = base.aggregateLocal.value_or(local);
        schedule.spreadLocal = base.spreadLocal.value_or(spreadLocal);
      }
  });
}

/// All values of one field.
template <typename Field, typename Value>
Dimension settings(Field field, const std::vector<Value> &values) {
  return combine(
      [field, values](const ScheduleOptions &current, std::vector<ScheduleOptions> &result) {
        for (const Value &value : values)
          (result.emplace_back(current).*field) = value;
      });
}

} // namespace

ScheduleOptions ScheduleOptions::of(const PipelineOptions &options) {
  // For each row its field; the two structs have the same names.
  ScheduleOptions schedule;
#define OCCL_SCHEDULE_SWITCH(member, name, usual, help) schedule.member = options.member;
#define OCCL_SCHEDULE_EITHER(member, name, effective, yes, no)                                     \
  schedule.member = options.effective();
#define OCCL_SCHEDULE_NUMBER(member, name, usual, least, most, help)                               \
  schedule.member = options.member;
#define OCCL_SCHEDULE_WORD(member, name, usual, words, help) schedule.member = options.member;
#include "compiler/driver/PipelineOptions.def"
  return schedule;
}

void ScheduleOptions::applyTo(PipelineOptions &options) const {
#define OCCL_SCHEDULE_SWITCH(member, name, usual, help) options.member = member;
#define OCCL_SCHEDULE_EITHER(member, name, effective, yes, no) options.member = member;
#define OCCL_SCHEDULE_NUMBER(member, name, usual, least, most, help) options.member = member;
#define OCCL_SCHEDULE_WORD(member, name, usual, words, help) options.member = member;
#include "compiler/driver/PipelineOptions.def"
}

ScheduleOptions ScheduleOptions::staged() const {
  ScheduleOptions schedule = *this;
  schedule.foldArrivals = schedule.aggregateLocal = schedule.multicast = false;
  schedule.maxFanOut = 1;
  schedule.spreadLocal = schedule.shareChannels = true;
  return schedule;
}

ScheduleOptions ScheduleOptions::spread() const {
  ScheduleOptions schedule = *this;
  schedule.aggregateLocal = false;
  schedule.spreadLocal = true;
  return schedule;
}

std::string ScheduleOptions::text(const ScheduleOptions &usual) const {
  // Without aggregation the other one has no effect, so that naming it would be noise.
  ScheduleOptions said = *this;
  if (!aggregate) // then nothing is joined
    said.aggregateLocal = usual.aggregateLocal;
  std::string text;
  auto add = [&](bool isUnusual, const std::string &option) {
    if (isUnusual)
      text += (text.empty() ? "--" : " --") + option;
  };
#define OCCL_SCHEDULE_SWITCH(member, name, usually, help)                                          \
  add(said.member != usual.member, (usually) ? "no-" name : (name));
#define OCCL_SCHEDULE_EITHER(member, name, effective, yes, no)                                     \
  add(said.member != usual.member, said.member ? (name) : "no-" name);
#define OCCL_SCHEDULE_NUMBER(member, name, usually, least, most, help)                             \
  add(said.member != usual.member, name " " + std::to_string(said.member));
#define OCCL_SCHEDULE_WORD(member, name, usually, words, help)                                     \
  add(said.member != usual.member, name " " + said.member);
#include "compiler/driver/PipelineOptions.def"
  return text;
}

std::vector<Dimension> searchSpace(const PipelineOptions &options) {
  // Each dimension is a question with some answers; what the user's options settle is no question.
  const ScheduleOptions base = ScheduleOptions::of(options);
  std::vector<Dimension> dimensions;
  // Only instances have channels to share.
  if (!base.shareChannels && options.instances > 1)
    dimensions.push_back(
        settings<bool ScheduleOptions::*, bool>(&ScheduleOptions::shareChannels, {false, true}));
  dimensions.push_back(concentration(base));
  dimensions.push_back(neighbours(options));
  // With a single thread block nothing can be distributed.
  if (options.maxThreadBlocks < 2)
    return dimensions;
  if (base.layout == kUsual.layout)
    dimensions.push_back(settings<std::string ScheduleOptions::*, std::string>(
        &ScheduleOptions::layout, {"auto", "balanced", "phases", "peers", "earliest"}));
  // Powers of two up to what is allowed, and that itself.
  std::vector<uint32_t> numbers{0};
  const uint32_t most = std::min(options.maxThreadBlocks, options.maxChannels);
  for (uint32_t number = 1; number < most; number *= 2)
    numbers.push_back(number);
  numbers.push_back(most);
  if (base.colors == kUsual.colors)
    dimensions.push_back(
        settings<uint32_t ScheduleOptions::*, uint32_t>(&ScheduleOptions::colors, numbers));
  return dimensions;
}

} // namespace occl::driver
