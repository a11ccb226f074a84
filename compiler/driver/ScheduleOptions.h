// Ways to compile a program that do not change what it computes: what the cost model decides where
// nobody says.
#pragma once

#include "compiler/driver/PipelineOptions.h"

#include <functional>
#include <string>
#include <vector>

namespace occl::driver {

/// Whether schedule options are chosen by prediction. Auto: of small programs with a topology;
/// without one, of those with direct accesses, only where local instructions go.
enum class Tuning : uint8_t { Auto, On, Off };

/// The OCCL_SCHEDULE rows of PipelineOptions.def: fields of PipelineOptions of the same names, as
/// they are where nobody says and there is one instance.
struct ScheduleOptions {
#define OCCL_SCHEDULE_SWITCH(member, name, usual, help) bool member = usual;
#define OCCL_SCHEDULE_EITHER(member, name, effective, yes, no)                                     \
  bool member = PipelineOptions().effective();
#define OCCL_SCHEDULE_NUMBER(member, name, usual, least, most, help) uint32_t member = usual;
#define OCCL_SCHEDULE_WORD(member, name, usual, words, help) std::string member = usual;
#include "compiler/driver/PipelineOptions.def"

  static ScheduleOptions of(const PipelineOptions &options);
  void applyTo(PipelineOptions &options) const;
  /// What arrives is stored by as many thread blocks as there are senders, and then reduced in
  /// parts by all of them.
  ScheduleOptions staged() const;
  /// Each local instruction is by itself, and distributed over thread blocks.
  ScheduleOptions spread() const;
  /// Options of occlc that ask for them where `usual` are those of nobody's saying, as
  /// "--no-multicast --layout peers"; empty if they are the same.
  std::string text(const ScheduleOptions &usual) const;

  bool operator==(const ScheduleOptions &) const = default;
};

/// One step of a search: all settings of what belongs together, given the other options. Those that
/// `base`, the user's options, settle are left alone.
using Dimension = std::function<std::vector<ScheduleOptions>(const ScheduleOptions &current)>;

std::vector<Dimension> searchSpace(const PipelineOptions &base);

} // namespace occl::driver
