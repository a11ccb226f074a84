// Every collective, type and operation on device memory, in and out of place, compared with plain
// loops on the host.
#include "nccl/gpu/device_ranks.h"
#include "plan/collectives/collectives.h"
#include "runtime/exec/conformance/reference.h"

#include <cstring>

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
