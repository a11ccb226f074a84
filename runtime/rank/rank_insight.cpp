// Reports and traces of a rank.
#include "runtime/rank/rank_insight.h"

#include "runtime/control/records/pair_id.h"
#include "runtime/observe/report/ask_ranks.h"
#include "runtime/observe/report/output.h"
#include "runtime/observe/trace/trace_writer.h"
#include "runtime/sched/visit_recorder.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <utility>

namespace occl::daemon {

namespace {

using insight::MissingRanks;
using insight::RankReport;

std::vector<uint32_t> ranksWithWork(const plan::Plan *plan, uint32_t numRanks) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (!plan || plan->ranks[r].numThreadBlocks != 0)
      ranks.push_back(r);
  return ranks;
}

uint64_t traceOrigin() {
  const char *text = std::getenv("OCCL_TRACE_ORIGIN");
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

} // namespace

std::vector<RankReport> RankInsight::askAll() {
  const Fabric &fabric = *core.fabric;
  // Ranks answer by publishing what they wait for; this one does so at once.
  std::vector<RankReport> ranks = askRanks(fabric, [this] { watchdog.publishWaits(); });
  RankReport &own = ranks[fabric.rank()];
  // A rank without edges may lack room, or an executor that another communicator keeps.
  if (std::string missing = core.roomWaits.describe(); own.note.empty() && !missing.empty())
    own.note = "has a call that waits for room: " + missing;
  if (own.edges.empty() && own.note.empty() && core.hasOpen())
    if (std::string holder = watchdog.describeHolder(); !holder.empty())
      own.note = "runs none of its own: " + holder;
  return ranks;
}

bool RankInsight::hasSubmitted(uint32_t r, uint64_t collective, uint64_t ordinal) const {
  const transport::AnnounceCell *cell = core.fabric->of(r).announceTable().find(collective);
  return cell && (cell->done.load(std::memory_order_acquire) > ordinal || cell->find(ordinal));
}

std::vector<MissingRanks> RankInsight::findMissing(const std::vector<RankReport> &ranks) {
  // Collect what is open here, or is named by a wait of any rank.
  std::set<std::pair<uint64_t, uint64_t>> open;
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    open.emplace(task.invocation->id->id, task.invocation->ordinal);
  });
  for (const RankReport &rank : ranks)
    for (const transport::WaitEdge &edge : rank.edges)
      open.emplace(edge.collective, edge.ordinal);
  // Transfers of a pair have no records.
  std::erase_if(open, [](const auto &one) { return transport::isOfPair(one.first); });
  // For each, name the ranks that have work in it and have not announced it.
  std::vector<MissingRanks> missing;
  for (const auto &[collective, ordinal] : open) {
    MissingRanks &invocation = missing.emplace_back(MissingRanks{collective, ordinal, {}});
    auto plan = admission.lookUp(collective).plan;
    for (uint32_t r : ranksWithWork(plan.get(), core.fabric->numRanks()))
      if (!hasSubmitted(r, collective, ordinal))
        invocation.ranks.push_back(r);
  }
  return missing;
}

/// Of what this rank has not called itself others have announced the kind.
insight::KnownCollective RankInsight::lookUp(uint64_t id) const {
  insight::KnownCollective known = admission.lookUp(id);
  for (uint32_t r = 0; !known.plan && r < core.fabric->numRanks(); ++r) {
    const transport::AnnounceCell *cell = core.fabric->of(r).announceTable().find(id);
    // The record of the first invocation that the rank has not finished.
    const transport::AnnounceRecord *record =
        cell ? cell->find(cell->done.load(std::memory_order_acquire)) : nullptr;
    if (record)
      return {describe(id, nameOfKind(record->read().traits.kind)), nullptr};
  }
  return known;
}

std::string RankInsight::report() {
  std::vector<RankReport> ranks = askAll();
  std::string text;
  if (Status failure = core.fabric->failure(); !failure.ok())
    text = "the communicator has failed: " + failure.message() + "\n";
  return text + insight::describeWaits(
                    ranks, findMissing(ranks), [this](uint64_t id) { return lookUp(id); }, ticks());
}

Status RankInsight::startTrace(const std::string &pattern) {
  std::lock_guard lock(mutex);
  if (!core.trace.start())
    return {StatusCode::InvalidArgument, "rank " + std::to_string(core.fabric->rank()) +
                                             " is being traced already; stop that first"};
  tracePattern = pattern;
  return {};
}

Status RankInsight::stopTrace() {
  return stopTrace({}, [this](uint64_t id) { return admission.lookUp(id); });
}

Status RankInsight::stopTrace(insight::Trace::Recording others, const insight::LookUp &lookUp) {
  std::lock_guard lock(mutex);
  if (!core.trace.isOn())
    return {StatusCode::InvalidArgument,
            "rank " + std::to_string(core.fabric->rank()) + " is not being traced"};
  insight::Trace::Recording recording = core.trace.stop();
  // Waits under way become events that end here.
  core.device->board.forEachTask(core.place, [&](const BlockTask &task) {
    if (!task.wait)
      return;
    recording.events.push_back(waitEvent(task, task.wait));
    recording.events.back().end = std::max(ticks(), task.wait.from);
  });
  recording.events.insert(recording.events.end(), others.events.begin(), others.events.end());
  recording.dropped += others.dropped;
  insight::TraceHeader header{core.fabric->rank(), core.fabric->numRanks(), traceOrigin()};
  std::ostringstream text;
  insight::writeTrace(text, header, recording, lookUp);
  std::string path = insight::pathOf(tracePattern, header.rank, header.numRanks);
  // A trace replaces an earlier one of the same name.
  std::remove(path.c_str());
  return insight::append(path, text.view());
}

} // namespace occl::daemon
