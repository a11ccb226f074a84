#include "examples/partitioned/products.h"

#include "examples/partitioned/check.h"
#include "runtime/api/occl_device.cuh"

#include <string>
#include <utility>

namespace occl::examples {

namespace {

/// Sums that go round, and blocks that go to all: two ranks may exchange both.
constexpr int64_t kSums = 0, kBlocks = 1;
/// A band that does not come meanwhile, of a communicator that has not failed, ends the program's
/// use of the device: what follows in the stream must not take it for there.
constexpr uint64_t kNanoseconds = 60'000'000'000;

__global__ void __launch_bounds__(32) awaitBand(occlPartDevice_t receive, uint32_t band) {
  device::Part part(receive);
  if (wait(device::Warp(), part, band, kNanoseconds) == device::Wait::NotYet)
    __trap();
}

uint64_t bytesOf(occlDataType_t type) {
  if (type != occlBfloat16 && type != occlFloat16 && type != occlFloat32)
    throw std::runtime_error("products: elements are of bfloat16, float16 or float");
  return type == occlFloat32 ? 4 : 2;
}

/// This rank, and how many there are.
void whereIs(occlComm_t comm, uint32_t &rank, uint32_t &numRanks) {
  check(occlCommRank(comm, &rank), "occlCommRank");
  check(occlCommSize(comm, &numRanks), "occlCommSize");
}
uint32_t rankOf(occlComm_t comm) {
  uint32_t rank = 0, numRanks = 0;
  whereIs(comm, rank, numRanks);
  return rank;
}
uint32_t ranksOf(occlComm_t comm) {
  uint32_t rank = 0, numRanks = 0;
  whereIs(comm, rank, numRanks);
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
  return {memory, shape.bands, BandsOfBlocks(shape, numRanks).rowsOfBand * rowLength, shape.type};
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

/// Receives begin first, so that nobody's sends have to wait for long.
void startAll(const BlockRequests &requests, cudaStream_t stream) {
  for (const BlockRequest &request : requests)
    request.start(stream);
}
void prepareAll(const BlockRequests &requests, cudaStream_t stream) {
  for (const BlockRequest &request : requests)
    request.prepare(stream);
}
void waitForAll(const BlockRequests &requests, cudaStream_t stream) {
  for (const BlockRequest &request : requests)
    request.wait(stream);
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

// --- requests and streams ---

void BlockRequest::Free::operator()(occlPart_t part) const { occlPfree(part); }

BlockRequest BlockRequest::send(occlComm_t comm, const Block &from, uint32_t rank, int64_t tag) {
  occlPart_t part = nullptr;
  check(occlPsendInit(comm, from.memory, from.bands, from.count, from.type, rank, tag, nullptr,
                      &part),
        "occlPsendInit");
  return BlockRequest(part); // no kernel of the program has to do with it
}

BlockRequest BlockRequest::receive(occlComm_t comm, const Block &into, uint32_t rank, int64_t tag) {
  occlPart_t part = nullptr;
  check(occlPrecvInit(comm, into.memory, into.bands, into.count, into.type, rank, tag, nullptr,
                      &part),
        "occlPrecvInit");
  BlockRequest made(part);
  check(occlPdevice(part, &made.onDevice), "occlPdevice");
  return made;
}

void BlockRequest::start(cudaStream_t stream) const {
  check(occlPstartOn(part.get(), stream), "occlPstartOn");
}
void BlockRequest::prepare(cudaStream_t stream) const {
  check(occlPprepareOn(part.get(), stream), "occlPprepareOn");
}
void BlockRequest::ready(uint32_t first, uint32_t last, cudaStream_t stream) const {
  check(occlPreadyOn(part.get(), first, last, stream), "occlPreadyOn");
}
void BlockRequest::await(uint32_t band, cudaStream_t stream) const {
  awaitBand<<<1, 32, 0, stream>>>(onDevice, band);
  check(cudaGetLastError(), "launching the wait for a band");
}
void BlockRequest::wait(cudaStream_t stream) const {
  check(occlPwaitOn(part.get(), stream), "occlPwaitOn");
}

SideStream::SideStream() {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority");
  for (cudaEvent_t *event : {&order, &noted})
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

SideStream::~SideStream() {
  cudaEventDestroy(order);
  cudaEventDestroy(noted);
  cudaStreamDestroy(stream);
}

void SideStream::follow(cudaStream_t other) {
  check(cudaEventRecord(order, other), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream, order, 0), "cudaStreamWaitEvent");
}

void SideStream::precede(cudaStream_t other) {
  check(cudaEventRecord(order, stream), "cudaEventRecord");
  check(cudaStreamWaitEvent(other, order, 0), "cudaStreamWaitEvent");
}

void SideStream::note(cudaStream_t other) {
  check(cudaEventRecord(noted, other), "cudaEventRecord");
}

void SideStream::waitForNoted(cudaStream_t other) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(other, &capture), "cudaStreamIsCapturing");
  if (capture == cudaStreamCaptureStatusNone)
    check(cudaEventSynchronize(noted), "cudaEventSynchronize");
}

// --- all-gather + product ---

AllGatherProduct::AllGatherProduct(occlComm_t comm, const ProductShape &shape, void *gathered,
                                   void *product, Multiply multiply)
    : shape(shape), gathered(static_cast<char *>(gathered)), product(static_cast<char *>(product)),
      multiply(std::move(multiply)) {
  whereIs(comm, rank, numRanks);
  connectAll(comm, shape, this->gathered, shape.inner, sends, receives);
}

void AllGatherProduct::enqueue(cudaStream_t stream) {
  startAll(receives, stream);
  startAll(sends, stream);
  prepareAll(sends, stream);
  side.note(stream);
  side.follow(stream);
  multiplyBand(rank, 0, 1, stream);
  if (shape.hostWaits)
    side.waitForNoted(stream);
  // It is there already, so all goes at once, by bands so that they arrive one by one.
  for (const BlockRequest &block : sends)
    for (uint32_t band = 0; band < shape.bands; ++band)
      block.ready(band, band, side.stream);
  waitForAll(sends, side.stream);
  // What waits here is in the stream of the products, as beside them it would take their place.
  for (uint32_t d = 1; d < numRanks; ++d)
    for (uint32_t band = 0; band < shape.bands; ++band) {
      receives[d - 1].await(band, stream);
      multiplyBand(before(rank, d, numRanks), band, shape.bands, stream);
    }
  waitForAll(receives, stream);
  side.precede(stream);
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
    : comm(comm), shape(shape), left(static_cast<const char *>(left)),
      multiply(std::move(multiply)) {
  whereIs(comm, rank, numRanks);
  for (uint32_t step = 0; step + 1 < numRanks; ++step)
    blocks.push_back(scratch(step > 0));
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

/// A block's place.
char *ProductReduceScatter::scratch(bool isReceived) {
  const uint64_t bytes = BandsOfBlocks(shape, numRanks).blockBytes(shape.columns);
  void *memory = nullptr;
  if (isReceived)
    check(occlMemAlloc(comm, bytes, &memory), "occlMemAlloc");
  else
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return static_cast<char *>(memory);
}

ProductReduceScatter::~ProductReduceScatter() {
  sends.clear();
  receives.clear();
  for (size_t step = 0; step + 1 < blocks.size(); ++step)
    if (step == 0)
      cudaFree(blocks[step]);
    else
      occlMemFree(comm, blocks[step]);
}

void ProductReduceScatter::enqueue(cudaStream_t stream) {
  begin(stream);
  side.note(stream);
  multiplyAll(stream, [](uint32_t) {});
  end(stream);
}

void ProductReduceScatter::begin(cudaStream_t stream) {
  startAll(receives, stream);
  startAll(sends, stream);
  prepareAll(sends, stream);
}

/// Step by step each band of the block whose turn it is: the last one is this rank's own.
void ProductReduceScatter::multiplyAll(cudaStream_t stream, const Finished &finished) {
  for (uint32_t step = 0; step < numRanks; ++step)
    for (uint32_t band = 0; band < shape.bands; ++band) {
      if (step > 0)
        receives[step - 1].await(band, stream);
      multiplyBand(step, band, stream);
      side.follow(stream);
      if (shape.hostWaits && step == 0 && band == 0)
        side.waitForNoted(stream);
      if (step + 1 == numRanks)
        finished(band);
      else
        sends[step].ready(band, band, side.stream);
    }
}

void ProductReduceScatter::multiplyBand(uint32_t step, uint32_t band, cudaStream_t stream) {
  const BandsOfBlocks each(shape, numRanks);
  const uint64_t row = before(rank, step + 1, numRanks) * each.rowsOfBlock + band * each.rowsOfBand;
  multiply(left + row * shape.inner * each.elementBytes,
           blocks[step] + band * each.bandBytes(shape.columns), each.rowsOfBand, step > 0, stream);
}

void ProductReduceScatter::end(cudaStream_t stream) {
  waitForAll(sends, side.stream);
  waitForAll(receives, stream);
  side.precede(stream);
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
  SideStream &side = scatter.side;
  startAll(receives, stream);
  startAll(sends, stream);
  scatter.begin(stream);
  prepareAll(sends, stream);
  side.note(stream);
  scatter.multiplyAll(stream, [&](uint32_t band) {
    for (const BlockRequest &block : sends)
      block.ready(band, band, side.stream);
  });
  waitForAll(sends, side.stream);
  waitForAll(receives, stream);
  scatter.end(stream);
}

} // namespace occl::examples
