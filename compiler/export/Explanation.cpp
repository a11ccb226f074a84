#include "compiler/export/Explanation.h"

#include "compiler/cost/Predict.h"
#include "compiler/cost/Units.h"
#include "compiler/export/WaitText.h"
#include "plan/io/printer.h"
#include "support/text/wrapped.h"

#include <ostream>

namespace occl::exporter {

namespace {

using cost::timeText;

class Explainer : public plan::PlanNotes {
public:
  Explainer(const plan::Plan &plan, const cost::Prediction &prediction)
      : plan(plan), prediction(prediction) {}

  /// "works 4.20 us, waits 1.30 us for a message and 200 ns for an executor".
  std::string ofBlock(uint32_t block) const override {
    const cost::BlockTimes &times = prediction.blocks[block];
    std::string text = "works " + timeText(times.busy);
    const char *separator = ", waits ";
    for (size_t i = 1; i < cost::kNumWaits; ++i) {
      if (times.waits[i] == 0)
        continue;
      text +=
          separator + timeText(times.waits[i]) + " for " + cost::nameOf(static_cast<cost::Wait>(i));
      separator = ", ";
    }
    return text;
  }

  /// "runs from 2.10 us to 4.20 us, 1.00 us of it because of memory of node 0".
  std::string ofInstruction(uint32_t index) const override {
    const cost::StepRecord &step = prediction.steps[index];
    std::string text = "runs from " + timeText(step.begin) + " to " + timeText(step.end);
    if (step.delay > 0)
      text += ", " + timeText(step.delay) + " of it because of " +
              prediction.resources[step.resource].name;
    return text;
  }

  /// "before, waits 1.30 us for rank 3's message (...)".
  std::string ofWaits(uint32_t index) const override {
    const cost::StepRecord &step = prediction.steps[index];
    if (step.begin <= step.ready)
      return "";
    return "before, waits " + timeText(step.begin - step.ready) + " for " +
           waitText(plan, step.wait, step.cause);
  }

private:
  const plan::Plan &plan;
  const cost::Prediction &prediction;
};

} // namespace

support::Status writeExplanation(const plan::Plan &plan, const topology::Topology &topology,
                                 const ExplainOptions &options, std::ostream &out) {
  support::Expected<cost::Prediction> prediction =
      cost::predict(plan, topology, {.bytes = options.bytes});
  if (!prediction)
    return prediction.status();
  Explainer explainer(plan, *prediction);
  plan::printPlan(plan, out, {options.rank, options.threadBlock, &explainer});
  const std::string tiles = prediction->tiles == 1
                                ? "one tile"
                                : std::to_string(prediction->tiles) +
                                      " tiles, times of instructions are those of the first";
  out << wrapped("predicted on '" + topology.name + "' with " + cost::bytesText(options.bytes) +
                     " a part: " + timeText(prediction->makespan) + "; " + tiles,
                 2)
      << "\n";
  return {};
}

} // namespace occl::exporter
