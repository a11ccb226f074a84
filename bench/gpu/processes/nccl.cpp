#include "bench/gpu/processes/nccl.h"

#include "bench/gpu/nccl_library.h"

#include <cstring>

namespace occl::bench {

namespace {

/// Of NCCL's stable binary interface.
constexpr int kSymmetric = 1;
struct UniqueId {
  char bytes[128];
};

} // namespace

struct Nccl::Library : NcclLibrary {
  void *communicator = nullptr;
  int (*getUniqueId)(UniqueId *);
  int (*commInitRank)(void **, int, UniqueId, int);
  int (*memAlloc)(void **, size_t);
  int (*windowRegister)(void *, void *, size_t, void **, int) = nullptr;
  int (*allGather)(const void *, void *, size_t, int, void *, cudaStream_t);
  int (*reduceScatter)(const void *, void *, size_t, int, int, void *, cudaStream_t);
  int (*broadcast)(const void *, void *, size_t, int, int, void *, cudaStream_t);
  int (*reduce)(const void *, void *, size_t, int, int, int, void *, cudaStream_t);
  int (*send)(const void *, size_t, int, int, void *, cudaStream_t);
  int (*receive)(void *, size_t, int, int, void *, cudaStream_t);

  bool openAll(const char *name) {
    if (!open(name))
      return false;
    find(windowRegister, "ncclCommWindowRegister");
    return find(getUniqueId, "ncclGetUniqueId") && find(commInitRank, "ncclCommInitRank") &&
           find(memAlloc, "ncclMemAlloc") && find(allGather, "ncclAllGather") &&
           find(reduceScatter, "ncclReduceScatter") && find(broadcast, "ncclBroadcast") &&
           find(reduce, "ncclReduce") && find(send, "ncclSend") && find(receive, "ncclRecv");
  }
};

std::unique_ptr<Nccl> Nccl::join(Together &together, uint32_t rank, const char *name) {
  auto library = std::make_shared<Library>();
  if (!library->openAll(name))
    return nullptr;
  UniqueId id;
  static_assert(sizeof id <= Together::kNoteBytes);
  if (rank == 0) {
    requireNccl(library->getUniqueId(&id), "ncclGetUniqueId");
    std::memcpy(together.note(), &id, sizeof id);
  }
  together.meet();
  std::memcpy(&id, together.note(), sizeof id);
  requireNccl(library->commInitRank(&library->communicator, static_cast<int>(together.size()), id,
                                    static_cast<int>(rank)),
              "ncclCommInitRank");
  return std::unique_ptr<Nccl>(new Nccl(std::move(library), together.size()));
}

std::string Nccl::version() const { return library->version(); }

void *Nccl::allocate(size_t bytes, bool symmetric) {
  void *memory = nullptr, *window = nullptr;
  requireNccl(library->memAlloc(&memory, bytes), "ncclMemAlloc");
  if (symmetric && library->windowRegister != nullptr)
    requireNccl(library->windowRegister(library->communicator, memory, bytes, &window, kSymmetric),
                "ncclCommWindowRegister");
  return memory;
}

void Nccl::enqueue(Kind kind, const void *input, void *output, size_t count, cudaStream_t stream,
                   Type type) {
  const int element = type == Type::Float32 ? kNcclFloat32 : kNcclBfloat16;
  const Library &nccl = *library;
  void *communicator = nccl.communicator;
  switch (kind) {
  case Kind::AllReduce:
    return requireNccl(
        nccl.allReduce(input, output, count, element, kNcclSum, communicator, stream),
        "ncclAllReduce");
  case Kind::AllGather:
    return requireNccl(nccl.allGather(input, output, count, element, communicator, stream),
                       "ncclAllGather");
  case Kind::ReduceScatter:
    return requireNccl(
        nccl.reduceScatter(input, output, count, element, kNcclSum, communicator, stream),
        "ncclReduceScatter");
  case Kind::Broadcast:
    return requireNccl(nccl.broadcast(input, output, count, element, 0, communicator, stream),
                       "ncclBroadcast");
  case Kind::Reduce:
    return requireNccl(
        nccl.reduce(input, output, count, element, kNcclSum, 0, communicator, stream),
        "ncclReduce");
  case Kind::AllToAll: // below
  case Kind::Gather:   // standardCollectiveOf() says neither
  case Kind::Scatter:
    break;
  }
  group(true);
  for (uint32_t r = 0; r < numRanks; ++r) {
    size_t offset = r * count * sizeOf(type);
    requireNccl(nccl.send(static_cast<const char *>(input) + offset, count, element,
                          static_cast<int>(r), communicator, stream),
                "ncclSend");
    requireNccl(nccl.receive(static_cast<char *>(output) + offset, count, element,
                             static_cast<int>(r), communicator, stream),
                "ncclRecv");
  }
  group(false);
}

void Nccl::group(bool begins) {
  requireNccl(begins ? library->groupStart() : library->groupEnd(),
              begins ? "ncclGroupStart" : "ncclGroupEnd");
}

void Nccl::exchange(const void *input, uint32_t to, void *output, uint32_t from, size_t bytes,
                    cudaStream_t stream) {
  const Library &nccl = *library;
  requireNccl(nccl.send(input, bytes, kNcclUint8, static_cast<int>(to), nccl.communicator, stream),
              "ncclSend");
  requireNccl(
      nccl.receive(output, bytes, kNcclUint8, static_cast<int>(from), nccl.communicator, stream),
      "ncclRecv");
}

} // namespace occl::bench
