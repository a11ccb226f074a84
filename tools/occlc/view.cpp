#include "tools/occlc/view.h"

#include "compiler/export/TraceExport.h"
#include "compiler/view/Page.h"
#include "compiler/view/TraceReader.h"
#include "tools/occlc/output.h"
#include "tools/occlc/plan_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace occl::tools {

namespace {

std::optional<std::string> contentOf(const std::string &path) {
  std::ostringstream content;
  // A pipe is not opened: that would wait for a writer.
  if (std::error_code error; !std::filesystem::is_regular_file(path, error))
    return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return std::nullopt;
  // To copy nothing is a failure to a stream.
  const bool isEmpty = file.peek() == std::ifstream::traits_type::eof() && !file.bad();
  if (!isEmpty && !(content << file.rdbuf()).good())
    return std::nullopt;
  return content.str();
}

/// Whether it is to be read as a trace. Plans are read by who says what is wrong with them.
bool isTrace(const std::string &content) {
  return content.find("\"traceEvents\"") != std::string::npos &&
         content.find("\"numRanks\"") == std::string::npos;
}

int failToRead(const support::Status &status) { return fail(status.message() + " [E029]"); }
int failToOpen(const std::string &path) {
  // Of a file that is there and regular the last call of the system tells.
  std::string why = std::strerror(errno);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error)
    why = error.message();
  else if (std::filesystem::is_directory(status))
    why = "it is a directory";
  else if (!std::filesystem::is_regular_file(status))
    why = "it is no regular file";
  return fail("cannot read '" + path + "': " + why + " [E029]");
}

int writeTo(const ViewCommand &command, const std::string &title,
            const std::vector<view::Layer> &layers) {
  // Beside the file, if nobody says where.
  std::string path = command.output;
  if (path.empty())
    path = std::filesystem::path(command.path).replace_extension(".html").string();
  if (path == "-") {
    view::writePage(std::cout, title, layers);
    return flushOutput();
  }
  // The whole page is one file that needs nothing else: it can be sent to somebody.
  std::ofstream out(path);
  view::writePage(out, title, layers);
  if (!out.flush())
    return failToWrite(path);
  // The path, so that it can be opened by a click in most terminals.
  std::cout << path << "\n";
  return flushOutput();
}

int viewTrace(const ViewCommand &command, const std::string &content) {
  // Options are checked before the trace is read.
  if (!command.trace.empty())
    return fail("'" + command.path + "' is a trace; --trace goes with a plan [E026]");
  support::Expected<view::Schedule> schedule = view::readTrace(content, command.path);
  if (!schedule)
    return failToRead(schedule.status());
  const bool isPredicted = !schedule->plan.empty();
  return writeTo(command, std::filesystem::path(command.path).filename().string(),
                 {{isPredicted ? "predicted" : "measured", &*schedule}});
}

int viewPlan(const ViewCommand &command) {
  // Prediction.
  plan::VerifyResult result;
  std::optional<plan::Plan> plan = readVerified(command.path, result);
  if (!plan)
    return 1;
  std::optional<topology::Topology> topology = topologyFor(*plan, command.prediction);
  if (!topology)
    return 1;
  const uint64_t bytes = bytesFor(*plan, command.prediction);
  // The same text that `occlc trace` writes and the same reader as for measured ones: the page then
  // needs one kind of data.
  std::ostringstream predictedTrace;
  if (support::Status status = exporter::writeTrace(*plan, *topology, bytes, predictedTrace);
      !status)
    return failToPredict(status);
  support::Expected<view::Schedule> predicted = view::readTrace(predictedTrace.str(), command.path);
  if (!predicted)
    return failToRead(predicted.status());
  std::vector<view::Layer> layers = {{"predicted", &*predicted}};

  // Measurement.
  support::Expected<view::Schedule> measured = view::Schedule();
  if (!command.trace.empty()) {
    const std::optional<std::string> content = contentOf(command.trace);
    if (!content)
      return failToOpen(command.trace);
    // Only runs of this plan: a program's trace has all its collectives.
    measured = view::readTrace(*content, command.trace);
    const support::Status status =
        measured ? view::keepRunsOf(*predicted, *measured, command.trace) : measured.status();
    if (!status)
      return failToRead(status);
    layers.push_back({"measured", &*measured});
  }
  return writeTo(command,
                 plan->name + ": " + plan->collective + " of " + std::to_string(plan->numRanks) +
                     " ranks, " + std::to_string(bytes) + " bytes a part, on " + topology->name,
                 layers);
}

} // namespace

CLI::App *addView(CLI::App &app, ViewCommand &command) {
  CLI::App *sub = app.add_subcommand(
      "view", "write a page that shows a plan as it is predicted to run, or a trace");
  sub->add_option("file", command.path, "a plan, JSON or CBOR, or a trace")->required();
  sub->add_option("--trace", command.trace,
                  "a trace of runs of the plan (occl-run --trace), drawn below the prediction");
  sub->add_option("-o,--output", command.output,
                  "the page; without it, beside the file with .html; - is standard output");
  addPredictionOptions(*sub, command.prediction);
  return sub;
}

int view(const ViewCommand &command) {
  const std::optional<std::string> content = contentOf(command.path);
  if (!content)
    return failToOpen(command.path);
  return isTrace(*content) ? viewTrace(command, *content) : viewPlan(command);
}

} // namespace occl::tools
