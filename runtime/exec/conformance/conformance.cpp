#include "runtime/exec/conformance/conformance.h"

#include <cmath>
#include <cstring>
#include <random>

namespace occl::interpreter::conformance {

namespace {

Status wrong(uint32_t rank, const std::string &what) {
  return {StatusCode::InternalError, "rank " + std::to_string(rank) + ": " + what};
}

uint64_t inputElements(Simulation &simulation, uint32_t rank, DataType type) {
  return simulation.inputBytes(rank) / sizeOf(type);
}

void store(char *to, const std::vector<char> &bytes) {
  if (!bytes.empty())
    std::memcpy(to, bytes.data(), bytes.size());
}

Status compare(const char *actual, const std::vector<char> &expected, uint64_t elementBytes,
               uint32_t rank, const char *buffer) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (actual[i] != expected[i])
      return wrong(rank, std::string(buffer) + ": element " + std::to_string(i / elementBytes) +
                             " of " + std::to_string(expected.size() / elementBytes) + " is wrong");
  return {};
}

} // namespace

StatusOr<std::unique_ptr<CheckedCollective>>
CheckedCollective::make(const plan::Plan &plan, const SimulationOptions &options, uint64_t seed) {
  auto made = Simulation::make(plan, options);
  if (!made.ok())
    return made.status();
  auto checked = std::make_unique<CheckedCollective>();
  checked->simulated = std::move(*made);
  checked->options = options;
  checked->collective = plan.collective;
  checked->root = plan.root;
  Simulation &simulation = checked->simulation();
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    checked->inputs.push_back(exactInput(inputElements(simulation, r, options.type), options.type,
                                         options.op, seed * 1000 + r));
    if (options.op == ReduceOp::Avg && isFloat(options.type)) // each is divided before it is added
      checked->inputs[r] = multiplied(checked->inputs[r], plan.numRanks, options.type);
    store(simulation.input(r), encode(checked->inputs[r], options.type));
  }
  return checked;
}

Status CheckedCollective::check() {
  const uint64_t elementBytes = sizeOf(options.type);
  for (uint32_t r = 0; r < simulation().numRanks(); ++r) {
    std::vector<char> expected =
        encode(expectedOutput(collective, inputs, r, root, options.count, options.type, options.op),
               options.type);
    if (expected.size() > simulation().outputBytes(r))
      return wrong(r, "the output has " + std::to_string(simulation().outputBytes(r)) +
                          " bytes, not " + std::to_string(expected.size()));
    if (Status status = compare(simulation().output(r), expected, elementBytes, r, "output");
        !status.ok())
      return status;
    if (!options.inPlace)
      if (Status status = compare(simulation().input(r), encode(inputs[r], options.type),
                                  elementBytes, r, "input after the end");
          !status.ok())
        return status;
  }
  return simulation().intact() ? Status()
                               : wrong(0, "something was written outside the buffers of some rank");
}

Status checkCollective(const plan::Plan &plan, const SimulationOptions &options, uint64_t seed,
                       const Runner &run) {
  auto made = CheckedCollective::make(plan, options, seed);
  if (!made.ok())
    return made.status();
  Status status = run((*made)->simulation());
  return status.ok() ? (*made)->check() : status;
}

StatusOr<std::string> runOnArbitraryNumbers(const plan::Plan &plan,
                                            const SimulationOptions &options, uint64_t seed,
                                            const Runner &run) {
  auto made = Simulation::make(plan, options);
  if (!made.ok())
    return made.status();
  Simulation &simulation = **made;
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 3);
  for (uint32_t r = 0; r < plan.numRanks; ++r) {
    Numbers numbers;
    for (uint64_t i = 0; i < inputElements(simulation, r, options.type); ++i)
      if (isFloat(options.type))
        numbers.floats.push_back(normal(random));
      else
        numbers.integers.push_back(static_cast<int64_t>(random()));
    store(simulation.input(r), encode(numbers, options.type));
  }
  if (Status status = run(simulation); !status.ok())
    return status;
  std::string outputs;
  for (uint32_t r = 0; r < plan.numRanks; ++r)
    outputs.append(simulation.output(r), simulation.outputBytes(r));
  return outputs;
}

} // namespace occl::interpreter::conformance
