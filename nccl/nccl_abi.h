// NCCL 2.28's public interface as programs see it at run time: types, numbers and layouts of their
// structs. Declared here so that no CUDA header is needed; abi_test compares it with nccl.h.
// What a function does, and how that differs from NCCL: docs/nccl.md.
#pragma once

#include <climits>
#include <cstddef>

extern "C" {

struct CUstream_st;
typedef struct CUstream_st *cudaStream_t;

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;

constexpr size_t NCCL_UNIQUE_ID_BYTES = 128;
typedef struct {
  char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum : int {
  ncclSuccess,
  ncclUnhandledCudaError,
  ncclSystemError,
  ncclInternalError,
  ncclInvalidArgument,
  ncclInvalidUsage,
  ncclRemoteError,
  ncclInProgress,
  ncclNumResults
} ncclResult_t;

typedef enum : int {
  ncclSum,
  ncclProd,
  ncclMax,
  ncclMin,
  ncclAvg,
  ncclNumOps, // from here on: operations of ncclRedOpCreatePreMulSum
  ncclMaxRedOp = INT_MAX
} ncclRedOp_t;

typedef enum : int {
  ncclInt8,
  ncclUint8,
  ncclInt32,
  ncclUint32,
  ncclInt64,
  ncclUint64,
  ncclFloat16,
  ncclFloat32,
  ncclFloat64,
  ncclBfloat16,
  ncclFloat8e4m3,
  ncclFloat8e5m2,
  ncclNumTypes
} ncclDataType_t;

typedef enum : int { ncclScalarDevice, ncclScalarHostImmediate } ncclScalarResidence_t;

constexpr int NCCL_VERSION_CODE = 22809;
constexpr int NCCL_CONFIG_UNDEF_INT = INT_MIN;
constexpr unsigned NCCL_CONFIG_MAGIC = 0xcafebeef;
constexpr int NCCL_SPLIT_NOCOLOR = -1;
constexpr int NCCL_SHRINK_DEFAULT = 0;
constexpr int NCCL_SHRINK_ABORT = 1;

// A caller of another version has another size: fields are only ever added behind.
typedef struct ncclConfig_v22800 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
  int cgaClusterSize;
  int minCTAs;
  int maxCTAs;
  const char *netName;
  int splitShare;
  int trafficClass;
  const char *commName;
  int collnetEnable;
  int CTAPolicy;
  int shrinkShare;
  int nvlsCTAs;
  int nChannelsPerNetPeer;
  int nvlinkCentricSched;
} ncclConfig_t;

// What NCCL_CONFIG_INITIALIZER is in a program.
inline constexpr ncclConfig_t kNcclConfigInitializer = {sizeof(ncclConfig_t),
                                                        NCCL_CONFIG_MAGIC,
                                                        NCCL_VERSION_CODE,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        nullptr,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        nullptr,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT,
                                                        NCCL_CONFIG_UNDEF_INT};

typedef struct ncclSimInfo_v22200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
void ncclResetDebugInit();

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int numRanks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int numRanks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int numRanks, int rank, int numIds,
                                      ncclUniqueId *ids, ncclConfig_t *config);
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int numDevices, const int *devices);
ncclResult_t ncclCommSplit(ncclComm_t comm, int colour, int key, ncclComm_t *newComm,
                           ncclConfig_t *config);
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int numExcluded, ncclComm_t *newComm,
                            ncclConfig_t *config, int flags);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

ncclResult_t ncclMemAlloc(void **memory, size_t size);
ncclResult_t ncclMemFree(void *memory);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
                                    ncclWindow_t *window, int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t recvCount, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *send, void *recv, size_t sendCount, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info);

} // extern "C"
