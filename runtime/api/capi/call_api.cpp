// occlCall, for several calls, too, occlStart, and partitioned collectives, which are calls whose
// buffers are there part by part.
#include "runtime/api/capi/error.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/capi/transfer_group.h"
#include "runtime/api/capi/user_callback.h"
#include "runtime/api/coalescing/coalesced_call.h"

#include "plan/collectives/collectives.h"
#include "runtime/api/occl_coalesced.h"
#include "runtime/base/data_type.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/plan_library/plans_in_rounds.h"
#include "support/nvtx/ranges.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace occl;
using namespace occl::communicator;

namespace {

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

constexpr uint32_t kNumKinds = occlKindAllReduce + plan::kNumStandardCollectives;
#define OCCL_COLLECTIVE(enumerator, ...)                                                           \
  static_assert(occlKind##enumerator ==                                                            \
                occlKindAllReduce + static_cast<int>(plan::StandardCollective::enumerator));
#include "plan/collectives/collectives.def"
#undef OCCL_COLLECTIVE

/// Of a call that is checked.
nvtx::Range rangeOf(const occlComm &comm, const occlCall_t &given, Way way) {
  // As in occlKind_t; a plan has a name of its own.
  static constexpr const char *kNames[kNumKinds][2] = {
      {nullptr, nullptr},
#define OCCL_COLLECTIVE(enumerator, ...) {"occl" #enumerator, "occlStart " #enumerator},
#include "plan/collectives/collectives.def"
#undef OCCL_COLLECTIVE
  };
  return nvtx::Range([&]() -> nvtx::Named {
    return {given.plan ? given.plan->plan->name.c_str()
                       : kNames[given.kind][way == Way::Called ? 0 : 1],
            comm.category, given.count * sizeOf(static_cast<DataType>(given.dataType))};
  });
}

/// Whether nothing is wrong with the call; else refuse(text) has been called. A call that is right
/// costs no Status: with small ones that can be measured.
template <class Refuse> bool isRight(const occlCall_t &given, const Refuse &refuse) {
  constexpr uint64_t kMaxCount = uint64_t{1} << 58;
  // Enumerations may hold any number in C, and later steps index tables with these.
  if (static_cast<uint32_t>(given.kind) >= kNumKinds)
    return refuse("kind " + std::to_string(given.kind) + " is unknown");
  if ((given.kind == occlKindPlan) != (given.plan != nullptr))
    return refuse(given.plan ? "a plan is given, so kind must be occlKindPlan"
                             : "kind occlKindPlan needs a plan");
  if (static_cast<unsigned>(given.dataType) >= kNumDataTypes)
    return refuse("dataType " + std::to_string(given.dataType) + " is unknown");
  if (static_cast<unsigned>(given.op) >= kNumReduceOps)
    return refuse("op " + std::to_string(given.op) + " is unknown");
  if (given.callbacksNeverBlock > 1)
    return refuse("callbacksNeverBlock must be 0 or 1");
  // Below this limit the bytes of a buffer's part fit 64 bits.
  if (given.count > kMaxCount)
    return refuse("count " + std::to_string(given.count) + " is more than 2^58");
  // As in NCCL, a factor belongs to pre-multiplied sums alone.
  if (given.scalar && given.deviceScalar)
    return refuse("scalar and deviceScalar must not both be given");
  if ((given.scalar || given.deviceScalar) && given.op != occlSum)
    return refuse("a scalar is for occlSum alone");
  return true;
}

/// What binds the call's shape. Nothing of it depends on this rank.
StatusOr<daemon::CollectiveSpec> specOf(const occlComm &comm, const occlCall_t &given,
                                        Way way = Way::Called) {
  daemon::CollectiveSpec spec;
  spec.count = given.count;
  spec.type = static_cast<DataType>(given.dataType);
  spec.op = static_cast<ReduceOp>(given.op);
  const uint64_t bytes = given.count * sizeOf(spec.type);
  // Without a plan of the program the library chooses one by size, root and kind of buffers.
  if (given.kind != occlKindPlan) {
    auto chosen = choosePlan(comm, given.kind, bytes, given.root, way);
    if (!chosen.ok())
      return chosen.status();
    spec.plan = std::move(chosen->plan);
    spec.planHash = chosen->hash;
    return spec;
  }
  // A plan of the program has to be meant for parts of this size.
  const plan::Plan &plan = *given.plan->plan;
  if (bytes < plan.minBytes || bytes > plan.maxBytes)
    return invalid("the plan is not meant for " + std::to_string(bytes) + " bytes, but for " +
                   std::to_string(plan.minBytes) + " to " + std::to_string(plan.maxBytes));
  spec.plan = given.plan->plan;
  spec.planHash = given.plan->hash;
  return spec;
}

/// The caller's struct as this version knows it, with what the daemon takes of it.
class Call {
public:
  /// Not copied if it is of this version.
  Status read(const occlCall_t *from, bool isOnHost = false) {
    Status wrong;
    const auto refuse = [&](std::string text) {
      wrong = invalid(std::move(text));
      return false;
    };
    given = from;
    // A struct of another version: fields that its caller does not know keep their defaults.
    if (from->size != sizeof(occlCall_t)) {
      copy = OCCL_CALL_INITIALIZER;
      if (!copySized(copy, from))
        return invalid("call->size is not set; start from OCCL_CALL_INITIALIZER");
      given = &copy;
    }
    if (!isRight(*given, refuse))
      return wrong;
    if (isOnHost && given->deviceScalar)
      return invalid("deviceScalar is for occlDeviceCuda; the communicator is on hosts");
    // The key of the shape: all ranks of the call say the same.
    signature.planHash = given->plan ? given->plan->hash : 0;
    signature.count = given->count;
    signature.root = given->plan ? 0 : given->root;
    signature.kind = static_cast<uint8_t>(given->kind);
    signature.type = static_cast<DataType>(given->dataType);
    signature.op = static_cast<ReduceOp>(given->op);
    // How this rank treats the call; other ranks may say something else.
    options.priority = given->priority;
    options.timeout = timeoutOf(given->timeoutMs);
    options.name = given->name;
    options.callbacksNeverBlock = given->callbacksNeverBlock != 0;
    return wrong;
  }

  daemon::Submission submission(uint64_t sequence) const {
    return {.id = sequence,
            .input = given->sendBuffer,
            .output = given->recvBuffer,
            .signature = &signature,
            .options = &options,
            .factor = given->scalar};
  }
  const occlCall_t &operator*() const { return *given; }
  const daemon::Signature &says() const { return signature; }
  const daemon::CallOptions &treatedAs() const { return options; }

private:
  const occlCall_t *given = nullptr;
  occlCall_t copy; // if it is of another version
  daemon::Signature signature;
  daemon::CallOptions options;
};

StatusOr<daemon::CollectiveSpec> specOnDevice(const occlComm &comm, const Call &given, Way way) {
  const occlCall_t &call = *given;
  auto spec = specOf(comm, call, way);
  if (!spec.ok())
    return spec.status();
  // On devices these are part of the spec; on hosts they go with the submission.
  spec->name = call.name ? call.name : "";
  spec->timeout = timeoutOf(call.timeoutMs);
  spec->id = call.id;
  spec->priority = call.priority;
  spec->callbacksNeverBlock = call.callbacksNeverBlock != 0;
  return spec;
}

Status callOnDevice(const occlComm &comm, const Call &given, CUstream_st *stream) {
  const nvtx::Range range = rangeOf(comm, *given, Way::Called);
  auto spec = specOnDevice(comm, given, Way::Called);
  if (!spec.ok())
    return spec.status();
  return comm.gpu->callInStream(*spec,
                                {.input = (*given).sendBuffer,
                                 .output = (*given).recvBuffer,
                                 .factor = {(*given).scalar, (*given).deviceScalar}},
                                stream);
}

/// Two calls or more, which are one collective.
Status callCoalesced(const occlComm &comm, std::span<const occlCall_t *const> calls,
                     const CoalescingRank &where, CUstream_st *stream) {
  const CoalescedCall one = coalesce(calls, where);
  Call given;
  if (Status read = given.read(&one.call); !read.ok())
    return read;
  const nvtx::Range range = rangeOf(comm, *given, Way::Called);
  auto spec = specOnDevice(comm, given, Way::Called);
  if (!spec.ok())
    return spec.status();
  // A report of one collective that nobody has called would be hard to understand.
  if (spec->name.empty())
    spec->name = std::to_string(calls.size()) + " calls as one";
  return comm.gpu->callPacked(*spec, one.packed, stream);
}

/// All calls are read before any is executed; numCalled: as occlCallCoalesced has it.
Status callAllOnDevice(const occlComm &comm, std::span<const occlCall_t *const> given,
                       CUstream_st *stream, size_t &numCalled) {
  // Structs of other versions are copied, and a wrong call ends the list.
  std::vector<Call> read(given.size());
  std::vector<const occlCall_t *> calls;
  Status wrong;
  for (size_t c = 0; c < given.size() && wrong.ok(); ++c) {
    wrong = given[c] ? read[c].read(given[c]) : invalid("a call must not be NULL");
    if (wrong.ok())
      calls.push_back(&*read[c]);
  }
  const CoalescingRank where = {comm.daemon->rank(), comm.daemon->numRanks()};
  while (numCalled < calls.size()) {
    const auto rest = std::span(calls).subspan(numCalled);
    const size_t number = comm.gpu->hasRegisteredBuffers() ? 1 : numCoalesced(rest, where);
    Status status = number == 1 ? callOnDevice(comm, read[numCalled], stream)
                                : callCoalesced(comm, rest.first(number), where, stream);
    if (!status.ok())
      return status;
    numCalled += number;
  }
  return wrong;
}

StatusOr<daemon::RequestId> startOnDevice(const occlComm &comm, const Call &given,
                                          const daemon::Callback &callback) {
  auto spec = specOnDevice(comm, given, Way::Started);
  if (!spec.ok())
    return spec.status();
  const occlCall_t &call = *given;
  cuda::DeviceRank::Start start = {.spec = *spec,
                                   .kind = static_cast<uint8_t>(call.kind),
                                   .root = call.plan ? 0 : call.root,
                                   .input = call.sendBuffer,
                                   .output = call.recvBuffer,
                                   .factor = {call.scalar, call.deviceScalar},
                                   .after = {},
                                   .callback = callback};
  // The call begins after the work that this stream has so far.
  if (call.after)
    start.after = *call.after;
  return comm.gpu->start(start);
}

/// The collective in so many rounds, two or more; isChosen: by the library. InvalidArgument: that
/// cannot be, or would take longer on devices, where more thread blocks than the persistent kernel
/// has have smaller messages and wait for each other.
StatusOr<daemon::CollectiveSpec> cutInRounds(const occlComm &comm,
                                             const daemon::CollectiveSpec &spec, uint32_t rounds,
                                             bool isChosen) {
  constexpr uint32_t kMostChosenBlocks = 16, kAny = ~0u;
  auto cut = plan_library::PlansInRounds::ofProcess().find(spec.plan, rounds);
  if (!cut.ok())
    return cut.status();
  daemon::CollectiveSpec inRounds = spec;
  inRounds.plan = *cut;
  // Hosts run any number of thread blocks; a device may refuse.
  Status fits =
      comm.gpu ? comm.gpu->mayHaveParts(inRounds, isChosen ? kMostChosenBlocks : kAny) : Status();
  return fits.ok() ? StatusOr<daemon::CollectiveSpec>(std::move(inRounds)) : fits;
}

/// In as many rounds as the caller wants, or, with 0, as suit its size and its communicator; the
/// latter in one if the plan cannot be cut. All ranks that say the same get the same.
StatusOr<daemon::CollectiveSpec> specInRounds(const occlComm &comm, const occlCall_t &given,
                                              uint64_t wanted) {
  constexpr uint64_t kRoundBytes = 256 << 10, kMostChosen = 16;
  auto spec = specOf(comm, given, Way::Partitioned);
  if (!spec.ok())
    return spec;
  // The library's choice: a round for each 256 KiB of a part, 16 at most.
  const uint64_t bytes = given.count * sizeOf(spec->type);
  auto rounds = static_cast<uint32_t>(
      wanted != 0 ? wanted : std::clamp<uint64_t>(bytes / kRoundBytes, 1, kMostChosen));
  // The library's number is halved until the plan can be cut; the program's is taken or refused.
  for (; rounds > 1; rounds /= 2) {
    auto cut = cutInRounds(comm, *spec, rounds, wanted == 0);
    if (cut.ok()) {
      *spec = std::move(*cut);
      break;
    }
    if (wanted != 0)
      return cut.status();
    if (!comm.gpu) // where it has room for any, if it can be cut
      rounds = 1;
  }
  rounds = std::max(rounds, 1u);
  // A device has to be able to execute the uncut plan in parts, too.
  if (comm.gpu && rounds == 1)
    if (Status fits = comm.gpu->mayHaveParts(*spec, ~0u); !fits.ok())
      return fits;
  // The hash includes the rounds, so that ranks which cut differently do not match.
  spec->planHash = daemon::hashInRounds(spec->planHash, rounds);
  spec->rounds = rounds;
  return spec;
}

StatusOr<daemon::PartitionedTerms> partitionedTerms(const occlComm &comm, const Call &call,
                                                    int64_t sendPartitions, int64_t recvPartitions,
                                                    const occlPartConfig_t *config) {
  occlPartConfig_t given = OCCL_PART_CONFIG_INITIALIZER;
  if (config && !copySized(given, config))
    return invalid("config->size is not set; use OCCL_PART_CONFIG_INITIALIZER");
  if (given.partitionsPerMessage != 0)
    return invalid("config->partitionsPerMessage is " + std::to_string(given.partitionsPerMessage) +
                   "; collectives have rounds instead");
  if (given.rounds > OCCL_MAX_ROUNDS)
    return invalid("config->rounds is " + std::to_string(given.rounds) + ", more than " +
                   std::to_string(OCCL_MAX_ROUNDS));
  if ((*call).id != 0)
    return invalid("id is " + std::to_string((*call).id) +
                   "; partitioned collectives belong together in the order in which they are made");
  auto spec = specInRounds(comm, *call, given.rounds);
  if (!spec.ok())
    return spec.status();
  // The signature is for all ranks to agree on; the rest is this rank's own.
  daemon::PartitionedTerms terms;
  terms.signature = call.says();
  terms.signature.planHash = spec->planHash;
  terms.spec = std::move(*spec);
  terms.input = (*call).sendBuffer;
  terms.output = (*call).recvBuffer;
  // Numbers are checked of the buffers that this rank has.
  terms.inputPartitions = static_cast<uint64_t>(sendPartitions);
  terms.outputPartitions = static_cast<uint64_t>(recvPartitions);
  terms.options = call.treatedAs();
  terms.factor = (*call).scalar;
  return terms;
}

StatusOr<cuda::DevicePart *> partOnDevice(const occlComm &comm, const occlCall_t &call,
                                          daemon::PartitionedTerms &terms) {
  terms.spec.timeout = terms.options.timeout;
  terms.spec.priority = terms.options.priority;
  return comm.gpu->makePart(cuda::CollectiveTerms{
      .spec = terms.spec,
      .kind = static_cast<uint8_t>(call.kind),
      .root = call.plan ? 0 : call.root,
      .buffers = {terms.input, terms.output, terms.inputPartitions, terms.outputPartitions},
      .factor = {call.scalar, call.deviceScalar}});
}

} // namespace

occlResult_t occlPcollInit(occlComm_t comm, const occlCall_t *call, int64_t sendPartitions,
                           int64_t recvPartitions, const occlPartConfig_t *config,
                           occlPart_t *part) {
  if (!comm || !call || !part)
    return reportInvalid("occlPcollInit", "comm, call and part must not be NULL");
  return guarded("occlPcollInit", comm, [&]() -> Status {
    Call given;
    if (Status read = given.read(call, !comm->gpu); !read.ok())
      return read;
    auto terms = partitionedTerms(*comm, given, sendPartitions, recvPartitions, config);
    if (!terms.ok())
      return terms.status();
    return makePart(*comm, part, [&](occlPart &handle) {
      handle.rounds = terms->spec.rounds;
      // On devices epochs are work of streams.
      if (comm->gpu)
        return take(handle.onDevice, partOnDevice(*comm, *given, *terms));
      // On hosts an epoch is an invocation of this rank's daemon.
      return take(handle.collective,
                  comm->daemon->partitionedCollectives().make(std::move(*terms)));
    });
  });
}

occlResult_t occlCall(occlComm_t comm, const occlCall_t *call, CUstream_st *stream) {
  if (!comm || !call)
    return reportInvalid("occlCall", "comm and call must not be NULL");
  return guarded("occlCall", comm, [&]() -> Status {
    // On devices the call becomes the next work of its stream.
    if (comm->gpu) {
      Call given;
      Status read = given.read(call);
      return read.ok() ? callOnDevice(*comm, given, stream) : read;
    }
    if (stream)
      return invalid("stream must be NULL: the communicator is on hosts");
    // A call that blocks would wait inside of the group; the group fails with it.
    if (TransferGroup *group = TransferGroup::current()) {
      group->refuse(StatusCode::InvalidArgument, "occlCall was called inside of the group");
      return invalid("occlCall is no part of a group: call it before occlGroupStart or after "
                     "occlGroupEnd, or use occlStart");
    }
    Call given;
    if (Status read = given.read(call, true); !read.ok())
      return read;
    const nvtx::Range range = rangeOf(*comm, *given, Way::Called);
    // Blocking calls share one sequence, in which they are paired by their order.
    daemon::Submission submission = given.submission(daemon::kCallSequence);
    submission.isOwn = true;
    // The plan is chosen only if the shape is not known, so repeated calls save the search.
    return comm->daemon->call(submission, [&] { return specOf(*comm, *given); });
  });
}

occlResult_t occlCallCoalesced(occlComm_t comm, const occlCall_t *const *calls, size_t numCalls,
                               CUstream_st *stream, size_t *numCalled) {
  size_t number = 0;
  if (numCalled)
    *numCalled = 0;
  if (!comm || (!calls && numCalls != 0))
    return reportInvalid("occlCallCoalesced", "comm and calls must not be NULL");
  occlResult_t result = occlSuccess;
  if (comm->gpu) {
    result = guarded("occlCallCoalesced", comm, [&] {
      return callAllOnDevice(*comm, {calls, numCalls}, stream, number);
    });
  } else {
    // On hosts nothing is gained: a call costs less than a copy.
    while (number < numCalls && result == occlSuccess) {
      result = occlCall(comm, calls[number], stream);
      number += result == occlSuccess ? 1 : 0;
    }
  }
  if (numCalled)
    *numCalled = number;
  return result;
}

occlResult_t occlStart(occlComm_t comm, const occlCall_t *call, occlCallback_t callback, void *user,
                       occlRequest_t *request) {
  if (!comm || !call)
    return reportInvalid("occlStart", "comm and call must not be NULL");
  if (!callback && !request)
    return reportInvalid("occlStart", "callback and request must not both be NULL");
  return guarded("occlStart", comm, [&]() -> Status {
    Call given;
    if (Status read = given.read(call, !comm->gpu); !read.ok())
      return read;
    // The upper half of the ids is for sequences that the library makes itself.
    if ((*given).id >= transport::kFirstReservedId)
      return invalid("id " + std::to_string((*given).id) + " is reserved; take one below 2^63");
    const nvtx::Range range = rangeOf(*comm, *given, Way::Started);
    const daemon::Callback ending = callback ? wrapped(callback, user) : daemon::Callback();
    auto started = [&] {
      if (comm->gpu)
        return startOnDevice(*comm, given, ending);
      daemon::Submission submission = given.submission((*given).id);
      submission.callback = ending;
      return comm->daemon->start(submission, [&] { return specOf(*comm, *given); });
    }();
    if (!started.ok())
      return started.status();
    if (request)
      *request = *started;
    return {};
  });
}
