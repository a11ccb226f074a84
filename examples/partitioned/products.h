// Products of matrices whose input or output lies with all ranks, by a library whose kernels know
// nothing of communication, as cuBLAS: all-gather + product, product + reduce-scatter, product +
// all-reduce. Rows are divided into a block for each rank, and blocks into bands; while a band
// travels, the next one is multiplied. Nothing but products adds up: a rank adds its own one to the
// sum that it has received, as BLAS does with beta = 1.
#pragma once

#include "examples/partitioned/side_stream.h"
#include "runtime/api/occl.h"
#include "runtime/api/occl_partitioned.h"
#include "runtime/api/occl_partitioned_device.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace occl::examples {

/// The same on all ranks. Matrices are row-major, one row behind the other.
struct ProductShape {
  uint64_t rows = 0, inner = 0, columns = 0; // rows x inner times inner x columns
  uint32_t bands = 1;                        // of each rank's block of rows
  occlDataType_t type = occlBfloat16;        // of all elements: bfloat16 or float
  /// Thread blocks that send a band, on multiprocessors that products leave. 0: occlPreadyOn, with
  /// as many as the library takes, or none.
  uint32_t senders = 0;
  /// multiply() leaves some multiprocessors: what waits runs there, and not between products.
  bool leavesSome = false;
  /// enqueue() returns when all ranks that are sent to have begun the operation, not before. What
  /// the host knows of then can be sent by copy engines, which take no multiprocessor. So each rank
  /// has a thread of its own. Not where the stream is captured.
  bool hostWaits = false;
};

/// multiply(left, product, rows, adds, stream): puts into the stream what computes so many rows of
/// a product from as many rows of its left matrix, the right one being the rank's own; adds: to
/// what is there.
using Multiply =
    std::function<void(const void *left, void *product, uint64_t rows, bool adds, cudaStream_t)>;

/// How blocks of such a shape are divided. Throws std::runtime_error, which says what to do, if
/// rows are not a multiple of ranks times bands, or anything is 0.
struct BandsOfBlocks {
  BandsOfBlocks(const ProductShape &shape, uint32_t numRanks);

  /// Of a matrix with rows of so many elements.
  uint64_t bandBytes(uint64_t rowLength) const { return rowsOfBand * rowLength * elementBytes; }
  uint64_t blockBytes(uint64_t rowLength) const { return rowsOfBlock * rowLength * elementBytes; }

  uint64_t elementBytes, rowsOfBand = 0, rowsOfBlock = 0;
};

/// A send or receive of a block in bands, each of as many partitions. Throws std::runtime_error.
class BlockRequest {
public:
  struct Block {
    char *memory; // of a receive: of occlMemAlloc
    uint32_t bands;
    uint64_t count; // elements of a band
    occlDataType_t type;
    uint32_t senders; // as in ProductShape
  };
  static BlockRequest send(occlComm_t comm, const Block &from, uint32_t rank, int64_t tag);
  static BlockRequest receive(occlComm_t comm, const Block &into, uint32_t rank, int64_t tag);

  void start(cudaStream_t stream) const;
  void prepare(cudaStream_t stream) const;
  /// What the stream has done before is the band, and is sent.
  void ready(uint32_t band, cudaStream_t stream) const;
  /// What follows in the stream finds the band, of a receive, if its wait() succeeds.
  void await(uint32_t band, cudaStream_t stream) const;
  void wait(cudaStream_t stream) const;

private:
  struct Free {
    void operator()(occlPart_t part) const;
  };
  explicit BlockRequest(const Block &block);
  template <class Init>
  void init(const Init &make, const char *name, occlComm_t comm, const Block &block, uint32_t rank,
            int64_t tag);
  void ask();

  uint32_t partitions, senders; // of a band; thread blocks
  std::unique_ptr<occlPart, Free> part;
  occlPartDevice_t onDevice = {}; // of those that kernels of this program have to do with
};
using BlockRequests = std::vector<BlockRequest>;

/// What an operation's transfers do beside its products, in the order in which these are called.
/// Ranks call them alike.
class Transfers {
public:
  using Requests = std::vector<const BlockRequest *>;

  explicit Transfers(const ProductShape &shape);
  ~Transfers();
  Transfers(const Transfers &) = delete;
  Transfers &operator=(const Transfers &) = delete;

  /// An epoch of each begins.
  void begin(const Requests &receives, const Requests &sends, cudaStream_t products);
  /// If the host is to wait for who is sent to: until they have begun.
  void meet(cudaStream_t products);
  /// What follows in the stream of products finds this band.
  void await(const BlockRequest &receive, uint32_t band, cudaStream_t products);
  /// The stream of products has computed the band number `band` of a block; it is sent.
  void computed(uint32_t band, cudaStream_t products);
  void send(const Requests &to, uint32_t band);
  /// Likewise what was there at the begin.
  void sendNow(const Requests &to, uint32_t band);
  /// All epochs end before what follows in the stream.
  void end(const Requests &receives, const Requests &sends, cudaStream_t products);

private:
  const ProductShape shape;
  SideStream side, arrivals; // what is sent; what is waited for, unless products leave nothing
  std::vector<cudaEvent_t> ofBands;
  cudaEvent_t begun = nullptr;
};

// Of all that follow: a rank's own; the rank's device is current, and buffers are device memory
// that lives as long. enqueue() puts one operation into the stream, which may be captured, on all
// ranks alike; operations of an object follow each other. Objects of a communicator are made in the
// same order on all ranks. They are freed when all operations have ended and graphs with them are
// destroyed. Constructors throw std::runtime_error, as does enqueue().

/// The product of a matrix of which each rank has a block of rows with the rank's own right matrix.
class AllGatherProduct {
public:
  /// gathered: rows x inner, of occlMemAlloc, of which the program stores its own block, number
  /// `rank`, and the others arrive here. product: rows x columns.
  AllGatherProduct(occlComm_t comm, const ProductShape &shape, void *gathered, void *product,
                   Multiply multiply);
  void enqueue(cudaStream_t stream);

private:
  void multiplyBand(uint32_t block, uint32_t band, uint32_t bands, cudaStream_t stream);

  const ProductShape shape;
  const uint32_t rank, numRanks;
  char *const gathered, *const product;
  const Multiply multiply;
  // To the rank that is d + 1 behind this one, and from the one that is as many before it.
  BlockRequests sends, receives;
  Transfers transfers;
};

/// Of products that are summed over all ranks, the rank's block: each block goes round, from the
/// rank behind its own to its own, and each rank adds its product. A sum that is sent has elements
/// of the type.
class ProductReduceScatter {
public:
  /// left: rows x inner. block: rows / ranks x columns, of occlMemAlloc.
  ProductReduceScatter(occlComm_t comm, const ProductShape &shape, const void *left, void *block,
                       Multiply multiply);
  void enqueue(cudaStream_t stream);

private:
  friend class ProductAllReduce;
  using Mark = std::function<void(uint32_t band)>;

  /// markOwn(band): is called behind the last product of the band.
  void multiplyAll(cudaStream_t stream, const Mark &markOwn);
  char *allocate(bool isReceived);
  void multiplyBand(uint32_t step, uint32_t band, cudaStream_t stream);

  const occlComm_t comm;
  const ProductShape shape;
  const uint32_t rank, numRanks;
  const char *const left;
  const Multiply multiply;
  std::vector<std::unique_ptr<char, std::function<void(char *)>>> scratch;
  std::vector<char *> blocks;    // of each step; the last one is the program's
  BlockRequests sends, receives; // of step s, and for step s + 1
  Transfers transfers;
};

/// The product, summed over all ranks: each band is sent to all others as soon as it is the sum.
class ProductAllReduce {
public:
  /// left: rows x inner. sum: rows x columns, of occlMemAlloc.
  ProductAllReduce(occlComm_t comm, const ProductShape &shape, const void *left, void *sum,
                   Multiply multiply);
  void enqueue(cudaStream_t stream);

private:
  ProductReduceScatter scatter;
  BlockRequests sends, receives; // of all other ranks
};

} // namespace occl::examples
