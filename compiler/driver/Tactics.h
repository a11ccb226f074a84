// Ways to compile a program that do not change what it computes: what the cost model decides where
// nobody says.
#pragma once

#include "compiler/driver/PipelineOptions.h"

#include <functional>
#include <string>
#include <vector>

namespace occl::driver {

/// Whether tactics are chosen by prediction. Auto: of small programs with a topology; without one,
/// of those with direct accesses, only where local instructions go.
enum class Tuning : uint8_t { Auto, On, Off };

/// The tactics of PipelineOptions.def: fields of PipelineOptions of the same names, as they are
/// where nobody says and there is one instance.
struct Tactics {
#define OCCL_TACTIC_SWITCH(member, name, usual, help) bool member = usual;
#define OCCL_TACTIC_EITHER(member, name, effective, yes, no)                                       \
  bool member = PipelineOptions().effective();
#define OCCL_TACTIC_NUMBER(member, name, usual, least, most, help) uint32_t member = usual;
#define OCCL_TACTIC_WORD(member, name, usual, words, help) std::string member = usual;
#include "compiler/driver/PipelineOptions.def"

  static Tactics of(const PipelineOptions &options);
  void applyTo(PipelineOptions &options) const;
  /// What arrives is stored by as many thread blocks as there are senders, and then reduced in
  /// parts by all of them.
  Tactics staged() const;
  /// Each local instruction is by itself, and distributed over thread blocks.
  Tactics spread() const;
  /// Options of occlc that ask for them where `usual` are those of nobody's saying, as
  /// "--no-multicast --layout peers"; empty if they are the same.
  std::string text(const Tactics &usual) const;

  bool operator==(const Tactics &) const = default;
};

/// One step of a search: all settings of what belongs together, given the other tactics. Those that
/// `base`, the user's options, settle are left alone.
using Dimension = std::function<std::vector<Tactics>(const Tactics &current)>;

std::vector<Dimension> searchSpace(const PipelineOptions &base);

} // namespace occl::driver
