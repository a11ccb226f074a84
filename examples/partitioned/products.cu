#include "examples/partitioned/products.h"

#include "examples/partitioned/check.h"
#include "runtime/api/occl_device.cuh"

#include <numeric>
#include <string>
#include <utility>

namespace occl::examples {

namespace {

/// Sums that go round, and blocks that go to all: two ranks may exchange both.
constexpr int64_t kSums = 0, kBlocks = 1;
/// A band that does not come meanwhile, of a communicator that has not failed, ends the program's
/// use of the device: what follows in the stream must not take it for there.
constexpr uint64_t kNanoseconds = 60'000'000'000;

/// Partitions of a band at most: enough for all thread blocks that send one, and a thread each of
/// the one that waits.
constexpr uint32_t kPartitions = 64, kSendingThreads = 512;

__global__ void __launch_bounds__(kPartitions) awaitBand(occlPartDevice_t receive, uint64_t first) {
  device::Part part(receive);
  if (wait(device::Thread(), part, first + threadIdx.x, kNanoseconds) == device::Wait::NotYet)
    __trap();
}

/// Each thread block sends some of these partitions.
__global__ void __launch_bounds__(kSendingThreads)
    sendBand(occlPartDevice_t send, uint64_t first, uint64_t number) {
  device::Part part(send);
  for (uint64_t i = blockIdx.x; i < number; i += gridDim.x)
    ready(device::Block(), part, first + i);
}

uint64_t bytesOf(occlDataType_t type) {
  if (type != occlBfloat16 && type != occlFloat32)
    throw std::runtime_error("products: elements are of bfloat16 or float");
  return type == occlFloat32 ? 4 : 2;
}

uint32_t rankOf(occlComm_t comm) {
  uint32_t rank = 0;
  check(occlCommRank(comm, &rank), "occlCommRank");
  return rank;
}
uint32_t ranksOf(occlComm_t comm) {
  uint32_t numRanks = 0;
  check(occlCommSize(comm, &numRanks), "occlCommSize");
  return numRanks;
}
uint32_t before(uint32_t rank, uint32_t steps, uint32_t numRanks) {
  return (rank + numRanks - steps) % numRanks;
}
uint32_t behind(uint32_t rank, uint32_t steps, uint32_t numRanks) {
  return (rank + steps) % numRanks;
}

/// Of the matrix with rows of so many elements.
BlockRequest::Block blockAt(char *memory, const ProductShape &shape, uint64_t rowLength,
                            uint32_t numRanks) {
  return {memory, shape.bands, BandsOfBlocks(shape, numRanks).rowsOfBand * rowLength, shape.type,
          shape.senders};
}

/// To all other ranks this one's block of a matrix, and from all others theirs, nearest first.
void connectAll(occlComm_t comm, const ProductShape &shape, char *matrix, uint64_t rowLength,
                BlockRequests &sends, BlockRequests &receives) {
  const uint32_t rank = rankOf(comm), numRanks = ranksOf(comm);
  const uint64_t bytes = BandsOfBlocks(shape, numRanks).blockBytes(rowLength);
  const auto blockOf = [&](uint32_t owner) {
    return blockAt(matrix + owner * bytes, shape, rowLength, numRanks);
  };
  for (uint32_t d = 1; d < numRanks; ++d) {
    const uint32_t to = behind(rank, d, numRanks), from = before(rank, d, numRanks);
    sends.push_back(BlockRequest::send(comm, blockOf(rank), to, kBlocks));
    receives.push_back(BlockRequest::receive(comm, blockOf(from), from, kBlocks));
  }
}

Transfers::Requests allOf(const BlockRequests &requests) {
  Transfers::Requests all;
  for (const BlockRequest &request : requests)
    all.push_back(&request);
  return all;
}
Transfers::Requests allOf(const BlockRequests &some, const BlockRequests &others) {
  Transfers::Requests all = allOf(some);
  for (const BlockRequest *other : allOf(others))
    all.push_back(other);
  return all;
}

} // namespace

BandsOfBlocks::BandsOfBlocks(const ProductShape &shape, uint32_t numRanks)
    : elementBytes(bytesOf(shape.type)) {
  const uint64_t bands = uint64_t{numRanks} * shape.bands;
  if (bands == 0 || shape.rows == 0 || shape.rows % bands != 0 || shape.inner == 0 ||
      shape.columns == 0)
    throw std::runtime_error(
        "products: " + std::to_string(shape.rows) + " x " + std::to_string(shape.inner) +
        " times " + std::to_string(shape.inner) + " x " + std::to_string(shape.columns) +
        ": rows are no multiple of " + std::to_string(numRanks) + " ranks times " +
        std::to_string(shape.bands) + " bands, or something is 0; take other bands, or pad rows");
  rowsOfBand = shape.rows / bands;
  rowsOfBlock = shape.rows / numRanks;
}

// --- requests ---

void BlockRequest::Free::operator()(occlPart_t part) const { occlPfree(part); }

BlockRequest::BlockRequest(const Block &block)
    : partitions(static_cast<uint32_t>(std::gcd(block.count, kPartitions))),
      senders(block.senders) {}

template <class Init>
void BlockRequest::init(const Init &make, const char *name, occlComm_t comm, const Block &block,
                        uint32_t rank, int64_t tag) {
  occlPart_t made = nullptr;
  check(make(comm, block.memory, int64_t{block.bands} * partitions, block.count / partitions,
             block.type, rank, tag, nullptr, &made),
        name);
  part.reset(made);
}

BlockRequest BlockRequest::send(occlComm_t comm, const Block &from, uint32_t rank, int64_t tag) {
  BlockRequest made(from);
  made.init(occlPsendInit, "occlPsendInit", comm, from, rank, tag);
  if (made.senders > 0) // else no kernel of the program has to do with it, which the library knows
    made.ask();
  return made;
}

BlockRequest BlockRequest::receive(occlComm_t comm, const Block &into, uint32_t rank, int64_t tag) {
  BlockRequest made(into);
  made.init(occlPrecvInit, "occlPrecvInit", comm, into, rank, tag);
  made.ask();
  return made;
}

void BlockRequest::ask() { check(occlPdevice(part.get(), &onDevice), "occlPdevice"); }

void BlockRequest::start(cudaStream_t stream) const {
  check(occlPstartOn(part.get(), stream), "occlPstartOn");
}
void BlockRequest::prepare(cudaStream_t stream) const {
  check(occlPprepareOn(part.get(), stream), "occlPprepareOn");
}
void BlockRequest::ready(uint32_t band, cudaStream_t stream) const {
  const int64_t first = int64_t{band} * partitions;
  if (senders == 0)
    return check(occlPreadyOn(part.get(), first, first + partitions - 1, stream), "occlPreadyOn");
  sendBand<<<senders, kSendingThreads, 0, stream>>>(onDevice, static_cast<uint64_t>(first),
                                                    partitions);
  check(cudaGetLastError(), "launching what sends a band");
}
void BlockRequest::await(uint32_t band, cudaStream_t stream) const {
  awaitBand<<<1, partitions, 0, stream>>>(onDevice, uint64_t{band} * partitions);
  check(cudaGetLastError(), "launching the wait for a band");
}
void BlockRequest::wait(cudaStream_t stream) const {
  check(occlPwaitOn(part.get(), stream), "occlPwaitOn");
}

// --- transfers ---

Transfers::Transfers(const ProductShape &shape) : shape(shape), ofBands(shape.bands) {
  for (cudaEvent_t &event : ofBands)
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

Transfers::~Transfers() {
  for (cudaEvent_t event : ofBands)
    cudaEventDestroy(event);
  cudaEventDestroy(begun);
}

/// Where products leave nothing, the first one would keep the device from all that is here.
void Transfers::begin(const Requests &receives, const Requests &sends, cudaStream_t products) {
  if (shape.leavesSome)
    side.follow(products);
  cudaStream_t stream = shape.leavesSome ? side.stream : products;
  for (const BlockRequest *receive : receives) // first, as others wait for that
    receive->start(stream);
  if (shape.leavesSome)
    arrivals.follow(stream);
  for (const BlockRequest *send : sends)
    send->start(stream);
  for (const BlockRequest *send : sends)
    send->prepare(stream);
  check(cudaEventRecord(begun, stream), "cudaEventRecord");
  if (!shape.leavesSome)
    side.follow(products);
}

void Transfers::meet(cudaStream_t products) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(products, &capture), "cudaStreamIsCapturing");
  if (shape.hostWaits && capture == cudaStreamCaptureStatusNone)
    check(cudaEventSynchronize(begun), "cudaEventSynchronize");
}

void Transfers::await(const BlockRequest &receive, uint32_t band, cudaStream_t products) {
  if (!shape.leavesSome)
    return receive.await(band, products);
  receive.await(band, arrivals.stream);
  arrivals.precede(products);
}

void Transfers::computed(uint32_t band, cudaStream_t products) {
  check(cudaEventRecord(ofBands[band], products), "cudaEventRecord");
}

void Transfers::send(const Requests &to, uint32_t band) {
  check(cudaStreamWaitEvent(side.stream, ofBands[band], 0), "cudaStreamWaitEvent");
  sendNow(to, band);
}

void Transfers::sendNow(const Requests &to, uint32_t band) {
  for (const BlockRequest *block : to)
    block->ready(band, side.stream);
}

void Transfers::end(const Requests &receives, const Requests &sends, cudaStream_t products) {
  for (const BlockRequest *send : sends)
    send->wait(side.stream);
  cudaStream_t stream = shape.leavesSome ? arrivals.stream : products;
  for (const BlockRequest *receive : receives)
    receive->wait(stream);
  if (shape.leavesSome)
    arrivals.precede(products);
  side.precede(products);
}

// --- all-gather + product ---

AllGatherProduct::AllGatherProduct(occlComm_t comm, const ProductShape &shape, void *gathered,
                                   void *product, Multiply multiply)
    : shape(shape), rank(rankOf(comm)), numRanks(ranksOf(comm)),
      gathered(static_cast<char *>(gathered)), product(static_cast<char *>(product)),
      multiply(std::move(multiply)), transfers(shape) {
  connectAll(comm, shape, this->gathered, shape.inner, sends, receives);
}

void AllGatherProduct::enqueue(cudaStream_t stream) {
  const Transfers::Requests to = allOf(sends), from = allOf(receives);
  transfers.begin(from, to, stream);
  multiplyBand(rank, 0, 1, stream);
  transfers.meet(stream);
  // It is there already: all to the nearest first, by bands so that they arrive one by one.
  for (const BlockRequest *block : to)
    for (uint32_t band = 0; band < shape.bands; ++band)
      transfers.sendNow({block}, band);
  for (uint32_t d = 1; d < numRanks; ++d)
    for (uint32_t band = 0; band < shape.bands; ++band) {
      transfers.await(receives[d - 1], band, stream);
      multiplyBand(before(rank, d, numRanks), band, shape.bands, stream);
    }
  transfers.end(from, to, stream);
}

void AllGatherProduct::multiplyBand(uint32_t block, uint32_t band, uint32_t bands,
                                    cudaStream_t stream) {
  const BandsOfBlocks each(shape, numRanks);
  const uint64_t rows = each.rowsOfBlock / bands, first = block * each.rowsOfBlock + band * rows;
  multiply(gathered + first * shape.inner * each.elementBytes,
           product + first * shape.columns * each.elementBytes, rows, false, stream);
}

// --- product + reduce-scatter ---

ProductReduceScatter::ProductReduceScatter(occlComm_t comm, const ProductShape &shape,
                                           const void *left, void *block, Multiply multiply)
    : comm(comm), shape(shape), rank(rankOf(comm)), numRanks(ranksOf(comm)),
      left(static_cast<const char *>(left)), multiply(std::move(multiply)), transfers(shape) {
  for (uint32_t step = 0; step + 1 < numRanks; ++step)
    blocks.push_back(allocate(step > 0));
  blocks.push_back(static_cast<char *>(block));
  const auto blockOf = [&](uint32_t step) {
    return blockAt(blocks[step], shape, shape.columns, numRanks);
  };
  for (uint32_t step = 0; step + 1 < numRanks; ++step) {
    sends.push_back(BlockRequest::send(comm, blockOf(step), behind(rank, 1, numRanks), kSums));
    receives.push_back(
        BlockRequest::receive(comm, blockOf(step + 1), before(rank, 1, numRanks), kSums));
  }
}

/// A block's place, which is freed after its requests.
char *ProductReduceScatter::allocate(bool isReceived) {
  const uint64_t bytes = BandsOfBlocks(shape, numRanks).blockBytes(shape.columns);
  void *memory = nullptr;
  if (isReceived)
    check(occlMemAlloc(comm, bytes, &memory), "occlMemAlloc");
  else
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
  scratch.emplace_back(static_cast<char *>(memory), [comm = comm, isReceived](char *block) {
    if (isReceived)
      occlMemFree(comm, block);
    else
      cudaFree(block);
  });
  return static_cast<char *>(memory);
}

void ProductReduceScatter::enqueue(cudaStream_t stream) {
  transfers.begin(allOf(receives), allOf(sends), stream);
  multiplyAll(stream, [](uint32_t) {});
  transfers.end(allOf(receives), allOf(sends), stream);
}

/// Step by step each band of the block whose turn it is: the last one is this rank's own. What a
/// rank waits for others have put into their streams before they wait themselves.
void ProductReduceScatter::multiplyAll(cudaStream_t stream, const Mark &markOwn) {
  const auto mark = [&](uint32_t step, uint32_t band) {
    if (step + 1 == numRanks)
      markOwn(band);
    else
      transfers.send({&sends[step]}, band);
  };
  for (uint32_t band = 0; band < shape.bands; ++band) {
    multiplyBand(0, band, stream);
    transfers.computed(band, stream);
  }
  transfers.meet(stream); // while these are computed
  for (uint32_t band = 0; band < shape.bands; ++band)
    mark(0, band);
  for (uint32_t step = 1; step < numRanks; ++step)
    for (uint32_t band = 0; band < shape.bands; ++band) {
      transfers.await(receives[step - 1], band, stream);
      multiplyBand(step, band, stream);
      transfers.computed(band, stream);
      mark(step, band);
    }
}

void ProductReduceScatter::multiplyBand(uint32_t step, uint32_t band, cudaStream_t stream) {
  const BandsOfBlocks each(shape, numRanks);
  const uint64_t row = before(rank, step + 1, numRanks) * each.rowsOfBlock + band * each.rowsOfBand;
  multiply(left + row * shape.inner * each.elementBytes,
           blocks[step] + band * each.bandBytes(shape.columns), each.rowsOfBand, step > 0, stream);
}

// --- product + all-reduce ---

namespace {

/// The rank's own.
char *blockOf(occlComm_t comm, const ProductShape &shape, void *sum) {
  return static_cast<char *>(sum) +
         rankOf(comm) * BandsOfBlocks(shape, ranksOf(comm)).blockBytes(shape.columns);
}

} // namespace

ProductAllReduce::ProductAllReduce(occlComm_t comm, const ProductShape &shape, const void *left,
                                   void *sum, Multiply multiply)
    : scatter(comm, shape, left, blockOf(comm, shape, sum), std::move(multiply)) {
  connectAll(comm, shape, static_cast<char *>(sum), shape.columns, sends, receives);
}

void ProductAllReduce::enqueue(cudaStream_t stream) {
  const Transfers::Requests to = allOf(sends);
  const Transfers::Requests allReceives = allOf(scatter.receives, receives),
                            allSends = allOf(scatter.sends, sends);
  Transfers &transfers = scatter.transfers;
  transfers.begin(allReceives, allSends, stream);
  scatter.multiplyAll(stream, [&](uint32_t band) { transfers.send(to, band); });
  transfers.end(allReceives, allSends, stream);
}

} // namespace occl::examples
