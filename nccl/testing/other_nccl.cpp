// Another NCCL for tests: ranks of one machine, host memory, calls that return when they have
// ended. It writes the names of the functions that are called to the file OTHER_NCCL_LOG.
// OTHER_NCCL_VERSION is its version, OTHER_NCCL_FAIL the rank whose ncclCommInitRankConfig fails;
// with OTHER_NCCL_FINALIZES_FOR_EVER ncclCommFinalize has no end. What is called after
// ncclCommAbort ends the process: NCCL has freed the communicator then.
#include "nccl/abi/later.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

constexpr size_t kBytes = 1 << 16; // of a call's data
constexpr int kMostRanks = 8;

/// What a rank shows to the others, call after call.
struct Slot {
  std::atomic<uint64_t> shown, taken;
  std::atomic<uint64_t> sent[kMostRanks], received[kMostRanks];
  char data[kBytes], messages[kMostRanks][kBytes];
};

struct Shared {
  std::atomic<int> numPresent;
  Slot slots[kMostRanks];
};

void note(const char *function) {
  const char *path = std::getenv("OTHER_NCCL_LOG");
  const int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0)
    return;
  const std::string line = std::string(function) + "\n";
  (void)!write(file, line.data(), line.size());
  close(file);
}

size_t sizeOf(ncclDataType_t type) { return type == ncclFloat32 || type == ncclInt32 ? 4 : 8; }

template <class Condition> void await(Condition condition) {
  while (!condition())
    usleep(50);
}

} // namespace

struct ncclComm {
  int numRanks, rank;
  Shared *shared;
  std::string name;
  uint64_t calls = 0, splits = 0, grown = 0;
  std::vector<float> scalars; // of pre-multiplied sums
  std::atomic<bool> isAborted = false, isFinalized = false;

  Slot &slot(int of) const { return shared->slots[of]; }
};

namespace {

struct Task {
  ncclComm_t comm;
  enum { Collective, Send, Receive } kind;
  std::string name;
  const void *from;
  void *to;
  size_t bytes;
  int root; // or peer
  bool isFloat = true;
  int op = ncclSum;

  void show() const {
    Slot &own = comm->slot(comm->rank);
    if (kind == Collective) {
      const uint64_t call = ++comm->calls;
      for (int r = 0; r < comm->numRanks; ++r) // what was shown before has been taken
        await([&] { return comm->slot(r).taken >= call - 1; });
      size_t shown = bytes;
      if (name == "ReduceScatter" || name == "AlltoAll")
        shown *= static_cast<size_t>(comm->numRanks);
      if (from)
        std::memcpy(own.data, from, std::min(shown, kBytes));
      if (op >= ncclNumOps)
        for (size_t i = 0; i < shown / sizeof(float); ++i)
          reinterpret_cast<float *>(own.data)[i] *= comm->scalars[static_cast<size_t>(op) - 100];
      own.shown = call;
    } else if (kind == Send) {
      await([&] { return own.sent[root] == comm->slot(root).received[comm->rank]; });
      std::memcpy(own.messages[root], from, bytes);
      ++own.sent[root];
    }
  }

  template <class T> void sum(size_t offset) const {
    auto *out = static_cast<T *>(to);
    for (size_t i = 0; i < bytes / sizeof(T); ++i) {
      T total = 0;
      for (int r = 0; r < comm->numRanks; ++r)
        total += reinterpret_cast<const T *>(comm->slot(r).data + offset)[i];
      out[i] = total;
    }
  }

  void take() const {
    if (kind == Receive) {
      const Slot &peer = comm->slot(root);
      Slot &own = comm->slot(comm->rank);
      await([&] { return peer.sent[comm->rank] > own.received[root]; });
      std::memcpy(to, peer.messages[comm->rank], bytes);
      ++own.received[root];
    }
    if (kind != Collective)
      return;
    const uint64_t call = comm->slot(comm->rank).shown;
    for (int r = 0; r < comm->numRanks; ++r)
      await([&] { return comm->slot(r).shown >= call; });
    const auto own = static_cast<size_t>(comm->rank);
    const size_t offset = name == "ReduceScatter" ? own * bytes : 0;
    if (name == "Broadcast")
      std::memcpy(to, comm->slot(root).data, bytes);
    else if (name == "AllGather")
      for (int r = 0; r < comm->numRanks; ++r)
        std::memcpy(static_cast<char *>(to) + static_cast<size_t>(r) * bytes, comm->slot(r).data,
                    bytes);
    else if (name == "AlltoAll")
      for (int r = 0; r < comm->numRanks; ++r)
        std::memcpy(static_cast<char *>(to) + static_cast<size_t>(r) * bytes,
                    comm->slot(r).data + own * bytes, bytes);
    else if (to && isFloat)
      sum<float>(offset);
    else if (to)
      sum<int>(offset);
    comm->slot(comm->rank).taken = call;
  }
};

thread_local int depth = 0;
thread_local std::vector<Task> tasks;

ncclResult_t add(Task task) {
  note(("nccl" + task.name).c_str());
  if (task.comm->isAborted || task.bytes > kBytes / kMostRanks)
    return ncclInvalidUsage;
  if (depth > 0) {
    tasks.push_back(std::move(task));
    return ncclSuccess;
  }
  task.show();
  task.take();
  return ncclSuccess;
}

Task collective(const char *name, const void *from, void *to, size_t count, ncclDataType_t type,
                int op, int root, ncclComm_t comm) {
  return {comm, Task::Collective,    name, from, to, count * sizeOf(type),
          root, type == ncclFloat32, op};
}

ncclComm_t join(const std::string &name, int numRanks, int rank) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0)
    return nullptr;
  void *at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  auto *comm = new ncclComm{numRanks, rank, static_cast<Shared *>(at), name, 0, 0, 0, {}};
  if (++comm->shared->numPresent == numRanks)
    shm_unlink(name.c_str());
  return comm;
}

} // namespace

ncclResult_t ncclGetVersion(int *version) {
  const char *given = std::getenv("OTHER_NCCL_VERSION");
  *version = given ? std::atoi(given) : 22703;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  note("ncclGetUniqueId");
  uint64_t number = 0;
  (void)!getrandom(&number, sizeof(number), 0);
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "/other-nccl-%llx",
                static_cast<unsigned long long>(number));
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSystemError ? "other: system error" : "other: some error";
}
const char *ncclGetLastError(ncclComm_t) { return "as it was asked to"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int numRanks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  note(config && config->blocking == 0 ? "ncclCommInitRankConfig, not blocking"
                                       : "ncclCommInitRankConfig");
  const char *failing = std::getenv("OTHER_NCCL_FAIL");
  if (failing && std::atoi(failing) == rank)
    return ncclSystemError;
  *comm = join(id.internal, numRanks, rank);
  if (!*comm)
    return ncclSystemError;
  if (config && config->blocking == 0)
    return ncclInProgress;
  await([&] { return (*comm)->shared->numPresent == numRanks; });
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (comm->isAborted)
    std::abort();
  if (comm->isFinalized && std::getenv("OTHER_NCCL_FINALIZES_FOR_EVER")) {
    *error = ncclInProgress;
    return ncclSuccess;
  }
  *error = comm->shared->numPresent >= comm->numRanks ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->numRanks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  note("ncclCommFinalize");
  if (comm->isFinalized.exchange(true))
    return ncclInvalidArgument;
  return std::getenv("OTHER_NCCL_FINALIZES_FOR_EVER") ? ncclInProgress : ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  note("ncclCommAbort");
  comm->isAborted = true;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  note("ncclGroupStart");
  ++depth;
  return ncclSuccess;
}
#ifndef OTHER_NCCL_IS_TINY
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  note("ncclCommDestroy");
  munmap(comm->shared, sizeof(Shared));
  delete comm;
  return ncclSuccess;
}
#endif
/// The k-th task of every communicator together, since ranks may be of one thread.
ncclResult_t ncclGroupEnd() {
  note("ncclGroupEnd");
  if (--depth > 0)
    return ncclSuccess;
  std::vector<Task> rest = std::exchange(tasks, {});
  while (!rest.empty()) {
    std::vector<Task> now, later;
    for (const Task &task : rest) {
      const bool isFirst = task.kind != Task::Collective ||
                           std::none_of(now.begin(), now.end(), [&](const Task &other) {
                             return other.comm == task.comm && other.kind == Task::Collective;
                           });
      (isFirst ? now : later).push_back(task);
    }
    for (const Task &task : now)
      task.show();
    for (const Task &task : now)
      task.take();
    rest = later;
  }
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  return add(collective("AllReduce", from, to, count, type, op, 0, comm));
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t) {
  return add(collective("Broadcast", from, to, count, type, ncclSum, root, comm));
}
ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t) {
  return add(
      collective("Reduce", from, comm->rank == root ? to : nullptr, count, type, op, root, comm));
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t) {
  return add(collective("ReduceScatter", from, to, count, type, op, 0, comm));
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t) {
  return add(collective("AllGather", from, to, count, type, ncclSum, 0, comm));
}
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t) {
  return add({comm, Task::Send, "Send", from, nullptr, count * sizeOf(type), peer});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t) {
  return add({comm, Task::Receive, "Recv", nullptr, to, count * sizeOf(type), peer});
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t,
                                      ncclScalarResidence_t, ncclComm_t comm) {
  note("ncclRedOpCreatePreMulSum");
  comm->scalars.push_back(*static_cast<float *>(scalar));
  *op = static_cast<ncclRedOp_t>(99 + comm->scalars.size());
  return ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) {
  note("ncclRedOpDestroy");
  return ncclSuccess;
}

/// Of all ranks that have a colour: the first half, or the second.
ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int, ncclComm_t *made, ncclConfig_t *) {
  note("ncclCommSplit");
  *made = nullptr;
  // Colours and keys of the others, by a call of all.
  std::vector<int> colours(static_cast<size_t>(comm->numRanks));
  ncclAllGather(&colour, colours.data(), 1, ncclInt32, comm, nullptr);
  const uint64_t number = ++comm->splits;
  if (colour == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  const auto begin = colours.begin();
  const auto rank = std::count(begin, begin + comm->rank, colour);
  *made = join(comm->name + "-" + std::to_string(number) + "-" + std::to_string(colour),
               static_cast<int>(std::count(begin, colours.end(), colour)), static_cast<int>(rank));
  return ncclInProgress;
}

/// Its ranks keep their numbers.
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id) {
  note("ncclCommGetUniqueId");
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "%s-grown-%llu", comm->name.c_str(),
                static_cast<unsigned long long>(comm->grown));
  return ncclSuccess;
}
ncclResult_t ncclCommGrow(ncclComm_t comm, int numRanks, const ncclUniqueId *id, int rank,
                          ncclComm_t *made, ncclConfig_t *) {
  note("ncclCommGrow");
  const std::string name =
      comm ? comm->name + "-grown-" + std::to_string(comm->grown++) : id->internal;
  *made = join(name, numRanks, comm ? comm->rank : rank);
  if (!*made)
    return ncclSystemError;
  await([&] { return (*made)->shared->numPresent == numRanks; });
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **memory, size_t bytes) {
  note("ncclMemAlloc");
  *memory = std::malloc(bytes);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *memory) {
  note("ncclMemFree");
  std::free(memory);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(const ncclComm_t, void *buffer, size_t, void **handle) {
  note("ncclCommRegister");
  *handle = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void *) {
  note("ncclCommDeregister");
  return ncclSuccess;
}
ncclResult_t ncclCommWindowRegister(ncclComm_t, void *buffer, size_t, ncclWindow_t *window, int) {
  note("ncclCommWindowRegister");
  *window = static_cast<ncclWindow_t>(buffer);
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) {
  note("ncclCommWindowDeregister");
  return ncclSuccess;
}

#ifndef OTHER_NCCL_IS_SMALL
ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t) {
  return add(collective("AlltoAll", from, to, count, type, ncclSum, 0, comm));
}
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *, void *deviceComm) {
  note("ncclDevCommCreate");
  *static_cast<int *>(deviceComm) = comm->numRanks;
  return ncclSuccess;
}
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int, void **pointer) {
  note("ncclGetPeerDevicePointer");
  *pointer = reinterpret_cast<char *>(window) + offset;
  return ncclSuccess;
}
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t,
                        cudaStream_t) {
  note("ncclSignal");
  return peer == 1 && signal == 2 && context == 3 && flags == 4 ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclPutSignal(const void *, size_t count, ncclDataType_t type, int peer, ncclWindow_t,
                           size_t offset, int signal, int context, unsigned flags, ncclComm_t,
                           cudaStream_t) {
  note("ncclPutSignal");
  return count == 1 && type == ncclInt32 && peer == 1 && offset == 8 && signal == 2 &&
                 context == 3 && flags == 4
             ? ncclSuccess
             : ncclInvalidUsage;
}
#endif

// The name of a function that OCCL's library has as well, called as a program calls it: what it
// reaches must be of this library, whichever was loaded first.
ncclResult_t ncclCommInitAll(ncclComm_t *, int, const int *) {
  const ncclResult_t begun = ncclGroupStart();
  return begun == ncclSuccess ? ncclGroupEnd() : begun;
}
