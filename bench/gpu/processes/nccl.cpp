#include "bench/gpu/processes/nccl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace occl::bench {

namespace {

/// Of NCCL's stable binary interface.
constexpr int kFloat32 = 7, kSum = 0, kSymmetric = 1;
struct UniqueId {
  char bytes[128];
};

void require(int error, const char *what) {
  if (error == 0)
    return;
  std::fprintf(stderr, "%s: NCCL error %d\n", what, error);
  std::exit(1);
}

} // namespace

struct Nccl::Library {
  void *handle = nullptr, *communicator = nullptr;
  int (*getVersion)(int *);
  int (*getUniqueId)(UniqueId *);
  int (*commInitRank)(void **, int, UniqueId, int);
  int (*memAlloc)(void **, size_t);
  int (*windowRegister)(void *, void *, size_t, void **, int) = nullptr;
  int (*groupStart)();
  int (*groupEnd)();
  int (*allReduce)(const void *, void *, size_t, int, int, void *, cudaStream_t);
  int (*allGather)(const void *, void *, size_t, int, void *, cudaStream_t);
  int (*reduceScatter)(const void *, void *, size_t, int, int, void *, cudaStream_t);
  int (*broadcast)(const void *, void *, size_t, int, int, void *, cudaStream_t);
  int (*reduce)(const void *, void *, size_t, int, int, int, void *, cudaStream_t);
  int (*send)(const void *, size_t, int, int, void *, cudaStream_t);
  int (*receive)(void *, size_t, int, int, void *, cudaStream_t);

  template <class Function> bool find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }
  bool open() {
    handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      return false;
    find(windowRegister, "ncclCommWindowRegister");
    return find(getVersion, "ncclGetVersion") && find(getUniqueId, "ncclGetUniqueId") &&
           find(commInitRank, "ncclCommInitRank") && find(memAlloc, "ncclMemAlloc") &&
           find(groupStart, "ncclGroupStart") && find(groupEnd, "ncclGroupEnd") &&
           find(allReduce, "ncclAllReduce") && find(allGather, "ncclAllGather") &&
           find(reduceScatter, "ncclReduceScatter") && find(broadcast, "ncclBroadcast") &&
           find(reduce, "ncclReduce") && find(send, "ncclSend") && find(receive, "ncclRecv");
  }
};

std::unique_ptr<Nccl> Nccl::join(Together &together, uint32_t rank) {
  auto library = std::make_shared<Library>();
  if (!library->open())
    return nullptr;
  UniqueId id;
  static_assert(sizeof id <= Together::kNoteBytes);
  if (rank == 0) {
    require(library->getUniqueId(&id), "ncclGetUniqueId");
    std::memcpy(together.note(), &id, sizeof id);
  }
  together.meet();
  std::memcpy(&id, together.note(), sizeof id);
  require(library->commInitRank(&library->communicator, static_cast<int>(together.size()), id,
                                static_cast<int>(rank)),
          "ncclCommInitRank");
  return std::unique_ptr<Nccl>(new Nccl(std::move(library), together.size()));
}

std::string Nccl::version() const {
  int number = 0;
  require(library->getVersion(&number), "ncclGetVersion");
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

void *Nccl::allocate(size_t bytes, bool symmetric) {
  void *memory = nullptr, *window = nullptr;
  require(library->memAlloc(&memory, bytes), "ncclMemAlloc");
  if (symmetric && library->windowRegister != nullptr)
    require(library->windowRegister(library->communicator, memory, bytes, &window, kSymmetric),
            "ncclCommWindowRegister");
  return memory;
}

void Nccl::enqueue(Kind kind, const void *input, void *output, size_t count, cudaStream_t stream) {
  const Library &nccl = *library;
  void *communicator = nccl.communicator;
  switch (kind) {
  case Kind::AllReduce:
    return require(nccl.allReduce(input, output, count, kFloat32, kSum, communicator, stream),
                   "ncclAllReduce");
  case Kind::AllGather:
    return require(nccl.allGather(input, output, count, kFloat32, communicator, stream),
                   "ncclAllGather");
  case Kind::ReduceScatter:
    return require(nccl.reduceScatter(input, output, count, kFloat32, kSum, communicator, stream),
                   "ncclReduceScatter");
  case Kind::Broadcast:
    return require(nccl.broadcast(input, output, count, kFloat32, 0, communicator, stream),
                   "ncclBroadcast");
  case Kind::Reduce:
    return require(nccl.reduce(input, output, count, kFloat32, kSum, 0, communicator, stream),
                   "ncclReduce");
  case Kind::AllToAll:
    break;
  }
  require(nccl.groupStart(), "ncclGroupStart");
  for (uint32_t r = 0; r < numRanks; ++r) {
    size_t offset = r * count * sizeof(float);
    require(nccl.send(static_cast<const char *>(input) + offset, count, kFloat32,
                      static_cast<int>(r), communicator, stream),
            "ncclSend");
    require(nccl.receive(static_cast<char *>(output) + offset, count, kFloat32, static_cast<int>(r),
                         communicator, stream),
            "ncclRecv");
  }
  require(nccl.groupEnd(), "ncclGroupEnd");
}

} // namespace occl::bench
