// Ways to compile a program that do not change what it computes: what the cost model decides where
// nobody says.
#pragma once

#include "compiler/driver/Pipeline.h"

#include <functional>
#include <string>
#include <vector>

namespace occl::driver {

/// Whether tactics are chosen by prediction. Auto: of small programs with a topology; without one,
/// of those with direct accesses, only where local instructions go.
enum class Tuning : uint8_t { Auto, On, Off };

/// The fields of PipelineOptions of the same names, as they are where nobody says and there is one
/// instance.
struct Tactics {
  bool multicast = true;
  bool foldArrivals = true;
  bool aggregate = true;
  bool aggregateLocal = true;
  uint32_t maxFanOut = PipelineOptions().maxFanOut;
  std::string layout = "auto";
  uint32_t colors = 0;
  bool spreadLocal = false;
  bool shareChannels = false;

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
