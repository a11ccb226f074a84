/* The standard collectives as functions: each is an occlCall. Counts are in elements of one part,
 * as in occlCall_t. On hosts stream is NULL. In place: recvBuffer is sendBuffer (all-reduce,
 * reduce, broadcast, all-to-all), or sendBuffer is the rank's part of recvBuffer (all-gather,
 * gather) or recvBuffer that of sendBuffer (reduce-scatter, scatter). */
#ifndef OCCL_COLLECTIVES_H
#define OCCL_COLLECTIVES_H

#include "occl.h"

static inline occlResult_t occlCallOfKind(occlKind_t kind, const void *sendBuffer, void *recvBuffer,
                                          uint64_t count, occlDataType_t dataType, occlRedOp_t op,
                                          uint32_t root, occlComm_t comm,
                                          struct CUstream_st *stream) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = kind;
  call.sendBuffer = sendBuffer;
  call.recvBuffer = recvBuffer;
  call.count = count;
  call.dataType = dataType;
  call.op = op;
  call.root = root;
  return occlCall(comm, &call, stream);
}

/* recvBuffer of all ranks: the reduction of all sendBuffers, count elements each. */
static inline occlResult_t occlAllReduce(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                         occlDataType_t dataType, occlRedOp_t op, occlComm_t comm,
                                         struct CUstream_st *stream) {
  return occlCallOfKind(occlKindAllReduce, sendBuffer, recvBuffer, count, dataType, op, 0, comm,
                        stream);
}
/* recvBuffer: the sendBuffers of all ranks, count elements each, one after the other. */
static inline occlResult_t occlAllGather(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                         occlDataType_t dataType, occlComm_t comm,
                                         struct CUstream_st *stream) {
  return occlCallOfKind(occlKindAllGather, sendBuffer, recvBuffer, count, dataType, occlSum, 0,
                        comm, stream);
}
/* recvBuffer of rank r: the reduction of part r, count elements, of all sendBuffers. */
static inline occlResult_t occlReduceScatter(const void *sendBuffer, void *recvBuffer,
                                             uint64_t count, occlDataType_t dataType,
                                             occlRedOp_t op, occlComm_t comm,
                                             struct CUstream_st *stream) {
  return occlCallOfKind(occlKindReduceScatter, sendBuffer, recvBuffer, count, dataType, op, 0, comm,
                        stream);
}
/* recvBuffer of all ranks: the sendBuffer of the root. */
static inline occlResult_t occlBroadcast(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                         occlDataType_t dataType, uint32_t root, occlComm_t comm,
                                         struct CUstream_st *stream) {
  return occlCallOfKind(occlKindBroadcast, sendBuffer, recvBuffer, count, dataType, occlSum, root,
                        comm, stream);
}
/* recvBuffer of the root: the reduction of all sendBuffers. */
static inline occlResult_t occlReduce(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                      occlDataType_t dataType, occlRedOp_t op, uint32_t root,
                                      occlComm_t comm, struct CUstream_st *stream) {
  return occlCallOfKind(occlKindReduce, sendBuffer, recvBuffer, count, dataType, op, root, comm,
                        stream);
}
/* Part q of rank r's sendBuffer, count elements, becomes part r of rank q's recvBuffer. */
static inline occlResult_t occlAllToAll(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                        occlDataType_t dataType, occlComm_t comm,
                                        struct CUstream_st *stream) {
  return occlCallOfKind(occlKindAllToAll, sendBuffer, recvBuffer, count, dataType, occlSum, 0, comm,
                        stream);
}
/* recvBuffer of the root: the sendBuffers of all ranks, count elements each. */
static inline occlResult_t occlGather(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                      occlDataType_t dataType, uint32_t root, occlComm_t comm,
                                      struct CUstream_st *stream) {
  return occlCallOfKind(occlKindGather, sendBuffer, recvBuffer, count, dataType, occlSum, root,
                        comm, stream);
}
/* recvBuffer of rank r: part r, count elements, of the root's sendBuffer. */
static inline occlResult_t occlScatter(const void *sendBuffer, void *recvBuffer, uint64_t count,
                                       occlDataType_t dataType, uint32_t root, occlComm_t comm,
                                       struct CUstream_st *stream) {
  return occlCallOfKind(occlKindScatter, sendBuffer, recvBuffer, count, dataType, occlSum, root,
                        comm, stream);
}

#endif /* OCCL_COLLECTIVES_H */
