// Every collective, type and operation on device memory, in and out of place, compared with plain
// loops on the host.
#include "nccl/gpu/device_ranks.h"
#include "plan/collectives/collectives.h"
#include "runtime/exec/conformance/reference.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

namespace occl::nccl::testing {
namespace {

namespace conformance = interpreter::conformance;

constexpr DataType kTypes[] = {DataType::Int8,     DataType::Uint8,      DataType::Int32,
                               DataType::Uint32,   DataType::Int64,      DataType::Uint64,
                               DataType::Float16,  DataType::Float32,    DataType::Float64,
                               DataType::Bfloat16, DataType::Float8E4m3, DataType::Float8E5m2};
static_assert(std::size(kTypes) == ncclNumTypes);
constexpr ReduceOp kOps[] = {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min,
                             ReduceOp::Avg};
static_assert(std::size(kOps) == ncclNumOps);

using Kind = plan::StandardCollective;

/// All of them.
constexpr Kind kKinds[] = {
#define OCCL_COLLECTIVE(enumerator, ...) Kind::enumerator,
#include "plan/collectives/collectives.def"
#undef OCCL_COLLECTIVE
};

struct Call {
  Kind kind;
  size_t count;
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  bool inPlace = false;
  size_t misalignment = 0; // bytes

  std::string name() const {
    return std::string(nameOf(kind)) + " of " + std::to_string(count) + ", type " +
           std::to_string(type) + ", operation " + std::to_string(op) + ", root " +
           std::to_string(root) + (inPlace ? ", in place" : "") + ", misaligned by " +
           std::to_string(misalignment) + ": ";
  }
};

class Collectives : public OnDevice {
protected:
  void run(const std::vector<Call> &calls);
  std::string run(int rank, const Call &call);
  void runGroup(const std::vector<Call> &calls, bool isCaptured = false);
  std::string runGroup(int rank, const std::vector<Call> &calls, bool isCaptured);
  std::vector<size_t> placesOf(const std::vector<Call> &calls) const;
  ncclResult_t launch(int rank, const Call &call, const char *from, char *to);
  std::vector<char> inputOf(int rank, const Call &call) const;
  std::vector<char> expected(int rank, const Call &call) const;
  conformance::Numbers numbersOf(int rank, const Call &call) const;
  size_t elements(const Call &call) const;
  plan::Parts partsOf(const Call &call) const {
    return {static_cast<uint32_t>(size()), static_cast<uint32_t>(call.root), call.count};
  }
};

/// Of the input; ranks that are not the root have some of a scatter as well, which is not looked
/// at.
size_t Collectives::elements(const Call &call) const { return inputSize(call.kind, partsOf(call)); }

conformance::Numbers Collectives::numbersOf(int rank, const Call &call) const {
  return conformance::exactInput(elements(call), kTypes[call.type], kOps[call.op],
                                 call.count * 1000 + static_cast<size_t>(rank));
}

std::vector<char> Collectives::inputOf(int rank, const Call &call) const {
  return conformance::encode(numbersOf(rank, call), kTypes[call.type]);
}

std::vector<char> Collectives::expected(int rank, const Call &call) const {
  std::vector<conformance::Numbers> inputs;
  for (int r = 0; r < size(); ++r)
    inputs.push_back(numbersOf(r, call));
  const DataType type = kTypes[call.type];
  return conformance::encode(conformance::expectedOutput(
                                 nameOf(call.kind), inputs, static_cast<uint32_t>(rank),
                                 static_cast<uint32_t>(call.root), call.count, type, kOps[call.op]),
                             type);
}

ncclResult_t Collectives::launch(int rank, const Call &call, const char *from, char *to) {
  const Rank &on = ranks[static_cast<size_t>(rank)];
  const auto [kind, count, type, op, root, inPlace, misalignment] = call;
  switch (kind) {
  case Kind::AllReduce:
    return ncclAllReduce(from, to, count, type, op, on.comm, on.stream);
  case Kind::AllGather:
    return ncclAllGather(from, to, count, type, on.comm, on.stream);
  case Kind::ReduceScatter:
    return ncclReduceScatter(from, to, count, type, op, on.comm, on.stream);
  case Kind::Broadcast:
    return inPlace ? ncclBcast(to, count, type, root, on.comm, on.stream)
                   : ncclBroadcast(from, to, count, type, root, on.comm, on.stream);
  case Kind::Reduce:
    return ncclReduce(from, to, count, type, op, root, on.comm, on.stream);
  case Kind::AllToAll:
    return ncclAlltoAll(from, to, count, type, on.comm, on.stream);
  case Kind::Gather:
    return ncclGather(from, to, count, type, root, on.comm, on.stream);
  case Kind::Scatter:
    return ncclScatter(from, to, count, type, root, on.comm, on.stream);
  }
  return ncclInvalidArgument;
}

/// Of the buffers nothing but the output has changed.
std::string Collectives::run(int rank, const Call &call) {
  constexpr size_t kGuard = 256;
  constexpr char kSpoilt = 0x5a;
  const Rank &on = ranks[static_cast<size_t>(rank)];
  const std::vector<char> input = inputOf(rank, call), right = expected(rank, call);
  const size_t part = call.count * sizeOf(kTypes[call.type]);
  const size_t apart = static_cast<size_t>(rank) * part; // of a rank's part in the whole
  const size_t begin = kGuard + call.misalignment;
  char *to = on.recv + begin, *from = call.inPlace ? to : on.send + call.misalignment;
  const bool isRoot = !hasRoot(call.kind) || rank == call.root;
  const int64_t apartBy = inPlaceOffset(call.kind, partsOf(call), static_cast<uint32_t>(rank));
  if (call.inPlace && isRoot && apartBy != 0)
    (apartBy > 0 ? from : to) += apart;
  const size_t whole = begin + std::max(input.size(), right.size()) + apart + kGuard;
  std::string wrong = check("cudaMemsetAsync", cudaMemsetAsync(on.recv, kSpoilt, whole, on.stream));
  if (wrong.empty())
    wrong = check("cudaMemcpyAsync", cudaMemcpyAsync(from, input.data(), input.size(),
                                                     cudaMemcpyHostToDevice, on.stream));
  // What only the root has to give may be missing elsewhere.
  const bool isSpare = call.inPlace && !isRoot;
  if (wrong.empty())
    wrong =
        check("the call", launch(rank, call, isSpare && call.kind == Kind::Scatter ? nullptr : from,
                                 isSpare && call.kind == Kind::Gather ? nullptr : to));
  std::vector<char> after(whole);
  if (wrong.empty())
    wrong = synchronize(on.stream);
  if (wrong.empty())
    wrong = check("cudaMemcpyAsync",
                  cudaMemcpyAsync(after.data(), on.recv, whole, cudaMemcpyDeviceToHost, on.stream));
  if (wrong.empty())
    wrong = synchronize(on.stream);
  ncclResult_t state = ncclSuccess;
  ncclCommGetAsyncError(on.comm, &state);
  if (wrong.empty())
    wrong = check("asynchronously", state);
  if (!wrong.empty())
    return call.name() + wrong;
  const auto offset = static_cast<size_t>(to - on.recv);
  const size_t inputAt = call.inPlace ? static_cast<size_t>(from - on.recv) : 0;
  for (size_t i = 0; i < whole; ++i) {
    const bool isOutput = i >= offset && i < offset + right.size();
    const bool isInput = call.inPlace && i >= inputAt && i < inputAt + input.size();
    if (isOutput ? after[i] != right[i - offset] : !isInput && after[i] != kSpoilt)
      return call.name() + "byte " + std::to_string(i) + " of " + std::to_string(whole) +
             (isOutput ? " is wrong" : " beside the output has changed");
  }
  return "";
}

void Collectives::run(const std::vector<Call> &calls) {
  inThreads([&](int rank) -> std::string {
    for (const Call &call : calls)
      if (std::string wrong = run(rank, call); !wrong.empty())
        return wrong;
    return "";
  });
}

TEST_F(Collectives, AllTypesAndOperationsOfTheKindsThatReduce) {
  std::vector<Call> calls;
  for (int type = 0; type < ncclNumTypes; ++type)
    for (int op = 0; op < ncclNumOps; ++op)
      for (Kind kind : {Kind::AllReduce, Kind::ReduceScatter, Kind::Reduce})
        for (size_t count : {1, 37, 4097})
          for (bool inPlace : {false, true})
            calls.push_back({kind, count, static_cast<ncclDataType_t>(type),
                             static_cast<ncclRedOp_t>(op), op % size(), inPlace,
                             inPlace ? 0 : 3 * sizeOf(kTypes[type])});
  run(calls);
}

TEST_F(Collectives, AllTypesAndRootsOfTheKindsThatMove) {
  std::vector<Call> calls;
  for (int type = 0; type < ncclNumTypes; ++type)
    for (Kind kind : kKinds)
      for (int root = 0; root < (hasRoot(kind) ? size() : 1); ++root)
        for (size_t count : {1, 333})
          for (bool inPlace : {false, true})
            if (!isReduction(kind))
              calls.push_back({kind, count, static_cast<ncclDataType_t>(type), ncclSum, root,
                               inPlace, sizeOf(kTypes[type])});
  run(calls);
}

/// From one element to more than a plan of lines takes; with more than two ranks on a device fewer,
/// since thread blocks of lines that wait for each other must fit on it together.
TEST_F(Collectives, AnyCount) {
  std::vector<Call> calls;
  for (Kind kind : kKinds)
    for (size_t count : {0, 1, 2, 3, 5, 31, 64, 1023, 20011, 65536, 500009, 1 << 20})
      for (bool inPlace : {false, true})
        // More ranks of one process than two have no room for the thread blocks of larger ones.
        if (size() <= 2 || count <= 1023)
          calls.push_back({kind, count, ncclFloat32, ncclSum, size() - 1, inPlace});
  run(calls);
}

/// Behind each other; from one call to the next there is a gap in which nothing changes.
std::vector<size_t> Collectives::placesOf(const std::vector<Call> &calls) const {
  constexpr size_t kGap = 256;
  std::vector<size_t> places;
  size_t next = kGap;
  for (const Call &call : calls) {
    const plan::Parts parts = partsOf(call);
    const uint64_t elements = std::max(inputSize(call.kind, parts), outputSize(call.kind, parts));
    places.push_back(next + call.misalignment);
    next += (elements * sizeOf(kTypes[call.type]) + call.misalignment + kGap) / kGap * kGap + kGap;
  }
  places.push_back(next);
  return places;
}

/// In one group, out of place but where input and output are of one size and the call is in place.
/// Of the outputs' memory nothing but the outputs has changed.
std::string Collectives::runGroup(int rank, const std::vector<Call> &calls, bool isCaptured) {
  constexpr char kSpoilt = 0x5a;
  const Rank &on = ranks[static_cast<size_t>(rank)];
  const std::vector<size_t> places = placesOf(calls);
  std::vector<char> before(places.back(), kSpoilt), right = before, sent = before, after = before;
  for (size_t c = 0; c < calls.size(); ++c) {
    const std::vector<char> input = inputOf(rank, calls[c]), output = expected(rank, calls[c]);
    std::ranges::copy(input, (calls[c].inPlace ? before : sent).begin() + long(places[c]));
    if (calls[c].inPlace)
      std::ranges::copy(input, right.begin() + long(places[c]));
    std::ranges::copy(output, right.begin() + long(places[c]));
  }
  const auto launchAll = [&]() -> std::string {
    std::string wrong = check("ncclGroupStart", ncclGroupStart());
    for (size_t c = 0; c < calls.size() && wrong.empty(); ++c)
      wrong = check("the call",
                    launch(rank, calls[c], (calls[c].inPlace ? on.recv : on.send) + places[c],
                           on.recv + places[c]));
    const std::string ended = check("ncclGroupEnd", ncclGroupEnd());
    return wrong.empty() ? ended : wrong;
  };
  const auto copy = [&](void *to, const void *from, cudaMemcpyKind kind) {
    return check("cudaMemcpyAsync", cudaMemcpyAsync(to, from, before.size(), kind, on.stream));
  };
  // A graph is replayed twice, so the second time the inputs in place must be there again.
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  std::string wrong;
  if (isCaptured) {
    wrong = check("begin", cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeRelaxed));
    if (wrong.empty())
      wrong = launchAll();
    const cudaError_t ended = cudaStreamEndCapture(on.stream, &graph);
    if (wrong.empty())
      wrong = check("end", ended);
    if (wrong.empty())
      wrong = check("cudaGraphInstantiate", cudaGraphInstantiate(&exec, graph, 0));
  }
  for (int i = 0; i < 2 && wrong.empty(); ++i) {
    wrong = copy(on.send, sent.data(), cudaMemcpyHostToDevice);
    if (wrong.empty())
      wrong = copy(on.recv, before.data(), cudaMemcpyHostToDevice);
    if (wrong.empty())
      wrong = isCaptured ? check("cudaGraphLaunch", cudaGraphLaunch(exec, on.stream)) : launchAll();
    if (wrong.empty())
      wrong = synchronize(on.stream);
    if (wrong.empty())
      wrong = copy(after.data(), on.recv, cudaMemcpyDeviceToHost);
    if (wrong.empty())
      wrong = synchronize(on.stream);
    for (size_t c = 0; c < calls.size() && wrong.empty(); ++c)
      for (size_t at = c == 0 ? 0 : places[c]; at < places[c + 1] && wrong.empty(); ++at)
        if (after[at] != right[at])
          wrong = calls[c].name() + "time " + std::to_string(i) + ", byte " +
                  std::to_string(at - places[c]) + " is wrong";
  }
  if (exec)
    cudaGraphExecDestroy(exec);
  if (graph)
    cudaGraphDestroy(graph);
  return wrong;
}

void Collectives::runGroup(const std::vector<Call> &calls, bool isCaptured) {
  inThreads([&](int rank) { return runGroup(rank, calls, isCaptured); });
}

/// Small ones are executed as one, whatever their counts: what the other one is not.
TEST_F(Collectives, GroupsOfOneKind) {
  for (Kind kind : kKinds)
    for (bool inPlace : {false, true}) {
      std::vector<Call> calls;
      for (size_t count : {1, 1024, 37, 0, 4099, 5})
        calls.push_back({kind, count, ncclFloat32, ncclSum, size() - 1,
                         inPlace && (kind == Kind::AllReduce || kind == Kind::AllToAll)});
      runGroup(calls);
    }
}

TEST_F(Collectives, GroupsOfAllTypesAndOperations) {
  for (int type = 0; type < ncclNumTypes; ++type)
    for (int op = 0; op < ncclNumOps; ++op) {
      std::vector<Call> calls;
      for (size_t count : {3, 256, 77})
        calls.push_back({Kind::AllReduce, count, static_cast<ncclDataType_t>(type),
                         static_cast<ncclRedOp_t>(op), 0, false, sizeOf(kTypes[type])});
      runGroup(calls);
    }
}

/// More than a kernel copies at once, and more than are one.
TEST_F(Collectives, AGroupOfManyCalls) {
  std::vector<Call> calls;
  for (size_t i = 0; i < 300; ++i)
    calls.push_back({i < 280 ? Kind::AllReduce : Kind::AllGather, 1 + i % 7 * 100});
  runGroup(calls);
}

/// Kinds, counts and types in any order, with calls between them that are too large to be one.
TEST_F(Collectives, GroupsAtRandom) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 12; ++round) {
    std::vector<Call> calls;
    Call next{Kind::AllReduce, 1};
    for (int i = 0; i < 12; ++i) {
      if (random() % 3 == 0)
        next = {kKinds[random() % std::size(kKinds)], 1, random() % 2 ? ncclFloat32 : ncclBfloat16,
                ncclSum, static_cast<int>(random()) & 1 ? size() - 1 : 0};
      next.count = random() % 8 == 0 ? 200'000 + random() % 100'000 : random() % 3000;
      next.misalignment = random() % 4 == 0 ? 4 : 0;
      calls.push_back(next);
    }
    runGroup(calls, round % 3 == 2);
  }
}

TEST_F(Collectives, GroupsInGraphs) {
  for (Kind kind : {Kind::AllReduce, Kind::ReduceScatter}) {
    std::vector<Call> calls;
    for (size_t count : {1000, 8, 2049})
      calls.push_back({kind, count, ncclFloat32, ncclAvg});
    runGroup(calls, true);
  }
}

/// Which the kernels of a graph show: two that copy, and one.
TEST_F(Collectives, SmallCallsOfAGroupAreOne) {
  constexpr size_t kCalls = 6, kCount = 1000;
  inThreads([&](int rank) -> std::string {
    const Rank &on = ranks[static_cast<size_t>(rank)];
    cudaGraph_t graph = nullptr;
    std::string wrong =
        check("begin", cudaStreamBeginCapture(on.stream, cudaStreamCaptureModeRelaxed));
    ncclGroupStart();
    for (size_t i = 0; i < kCalls && wrong.empty(); ++i)
      wrong =
          check("ncclAllReduce", ncclAllReduce(on.send + i * 4 * kCount, on.recv + i * 4 * kCount,
                                               kCount, ncclFloat32, ncclSum, on.comm, on.stream));
    const std::string grouped = check("ncclGroupEnd", ncclGroupEnd());
    const std::string ended = check("end", cudaStreamEndCapture(on.stream, &graph));
    size_t nodes = 0;
    if (wrong.empty() && grouped.empty() && ended.empty())
      wrong = check("cudaGraphGetNodes", cudaGraphGetNodes(graph, nullptr, &nodes));
    if (graph)
      cudaGraphDestroy(graph);
    if (!wrong.empty() || !grouped.empty() || !ended.empty())
      return wrong + grouped + ended;
    return nodes < kCalls ? "" : "the graph has " + std::to_string(nodes) + " nodes";
  });
}

/// A call that reads what another one of its group writes follows it, though both are small.
TEST_F(Collectives, CallsOfAGroupSeeWhatThoseBeforeThemHaveWritten) {
  constexpr size_t kCount = 100;
  inThreads([&](int rank) -> std::string {
    const Rank &on = ranks[static_cast<size_t>(rank)];
    const std::vector<int> ones(kCount, 1);
    std::string wrong = check("cudaMemcpy", cudaMemcpy(on.send, ones.data(), kCount * sizeof(int),
                                                       cudaMemcpyHostToDevice));
    ncclGroupStart();
    for (int i = 0; i < 3 && wrong.empty(); ++i)
      wrong = check("ncclAllReduce", ncclAllReduce(i == 0 ? on.send : on.recv, on.recv, kCount,
                                                   ncclInt32, ncclSum, on.comm, on.stream));
    const std::string ended = check("ncclGroupEnd", ncclGroupEnd());
    if (!wrong.empty() || !ended.empty())
      return wrong + ended;
    const int right = size() * size() * size();
    return taken(rank, kCount) == std::vector<int>(kCount, right) ? "" : "the sum is wrong";
  });
}

TEST_F(Collectives, BuffersAreAlignedToElements) {
  inThreads([&](int rank) -> std::string {
    const Rank &on = ranks[static_cast<size_t>(rank)];
    if (ncclAllReduce(on.send + 2, on.recv, 16, ncclInt32, ncclSum, on.comm, on.stream) !=
        ncclInvalidArgument)
      return "an address that no int has was taken";
    return lastError().find("aligned to their elements") != std::string::npos ? "" : lastError();
  });
}

} // namespace
} // namespace occl::nccl::testing
