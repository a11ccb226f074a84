/* Partitioned collectives as functions: each is an occlPcollInit. Counts are in elements of one
 * part, as in occlCall_t, and buffers in place as in occl_collectives.h; partitions, of the whole
 * buffer of the rank, what it owns when, and errors as occlPcollInit says. config may be NULL. */
#ifndef OCCL_PARTITIONED_COLLECTIVES_H
#define OCCL_PARTITIONED_COLLECTIVES_H

#include "occl_partitioned.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline occlResult_t
occlPinitOfKind(occlKind_t kind, const void *sendBuffer, int64_t sendPartitions, void *recvBuffer,
                int64_t recvPartitions, uint64_t count, occlDataType_t dataType, occlRedOp_t op,
                uint32_t root, occlComm_t comm, const occlPartConfig_t *config, occlPart_t *part) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = kind;
  call.sendBuffer = sendBuffer;
  call.recvBuffer = recvBuffer;
  call.count = count;
  call.dataType = dataType;
  call.op = op;
  call.root = root;
  return occlPcollInit(comm, &call, sendPartitions, recvPartitions, config, part);
}

/* recvBuffer of all ranks: the reduction of all sendBuffers, count elements each. */
static inline occlResult_t occlPallReduceInit(const void *sendBuffer, int64_t sendPartitions,
                                              void *recvBuffer, int64_t recvPartitions,
                                              uint64_t count, occlDataType_t dataType,
                                              occlRedOp_t op, occlComm_t comm,
                                              const occlPartConfig_t *config, occlPart_t *part) {
  return occlPinitOfKind(occlKindAllReduce, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, op, 0, comm, config, part);
}
/* recvBuffer: the sendBuffers of all ranks, count elements each, one after the other. */
static inline occlResult_t occlPallGatherInit(const void *sendBuffer, int64_t sendPartitions,
                                              void *recvBuffer, int64_t recvPartitions,
                                              uint64_t count, occlDataType_t dataType,
                                              occlComm_t comm, const occlPartConfig_t *config,
                                              occlPart_t *part) {
  return occlPinitOfKind(occlKindAllGather, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, occlSum, 0, comm, config, part);
}
/* recvBuffer of rank r: the reduction of part r, count elements, of all sendBuffers. */
static inline occlResult_t occlPreduceScatterInit(const void *sendBuffer, int64_t sendPartitions,
                                                  void *recvBuffer, int64_t recvPartitions,
                                                  uint64_t count, occlDataType_t dataType,
                                                  occlRedOp_t op, occlComm_t comm,
                                                  const occlPartConfig_t *config,
                                                  occlPart_t *part) {
  return occlPinitOfKind(occlKindReduceScatter, sendBuffer, sendPartitions, recvBuffer,
                         recvPartitions, count, dataType, op, 0, comm, config, part);
}
/* recvBuffer of all ranks: the sendBuffer of the root, which alone marks. */
static inline occlResult_t occlPbroadcastInit(const void *sendBuffer, int64_t sendPartitions,
                                              void *recvBuffer, int64_t recvPartitions,
                                              uint64_t count, occlDataType_t dataType,
                                              uint32_t root, occlComm_t comm,
                                              const occlPartConfig_t *config, occlPart_t *part) {
  return occlPinitOfKind(occlKindBroadcast, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, occlSum, root, comm, config, part);
}
/* recvBuffer of the root, which alone asks: the reduction of all sendBuffers. */
static inline occlResult_t occlPreduceInit(const void *sendBuffer, int64_t sendPartitions,
                                           void *recvBuffer, int64_t recvPartitions, uint64_t count,
                                           occlDataType_t dataType, occlRedOp_t op, uint32_t root,
                                           occlComm_t comm, const occlPartConfig_t *config,
                                           occlPart_t *part) {
  return occlPinitOfKind(occlKindReduce, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, op, root, comm, config, part);
}
/* Part q of rank r's sendBuffer, count elements, becomes part r of rank q's recvBuffer. */
static inline occlResult_t occlPallToAllInit(const void *sendBuffer, int64_t sendPartitions,
                                             void *recvBuffer, int64_t recvPartitions,
                                             uint64_t count, occlDataType_t dataType,
                                             occlComm_t comm, const occlPartConfig_t *config,
                                             occlPart_t *part) {
  return occlPinitOfKind(occlKindAllToAll, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, occlSum, 0, comm, config, part);
}
/* recvBuffer of the root, which alone asks: the sendBuffers of all ranks, count elements each. */
static inline occlResult_t occlPgatherInit(const void *sendBuffer, int64_t sendPartitions,
                                           void *recvBuffer, int64_t recvPartitions, uint64_t count,
                                           occlDataType_t dataType, uint32_t root, occlComm_t comm,
                                           const occlPartConfig_t *config, occlPart_t *part) {
  return occlPinitOfKind(occlKindGather, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, occlSum, root, comm, config, part);
}
/* recvBuffer of rank r: part r, count elements, of the sendBuffer of the root, which alone marks.
 */
static inline occlResult_t occlPscatterInit(const void *sendBuffer, int64_t sendPartitions,
                                            void *recvBuffer, int64_t recvPartitions,
                                            uint64_t count, occlDataType_t dataType, uint32_t root,
                                            occlComm_t comm, const occlPartConfig_t *config,
                                            occlPart_t *part) {
  return occlPinitOfKind(occlKindScatter, sendBuffer, sendPartitions, recvBuffer, recvPartitions,
                         count, dataType, occlSum, root, comm, config, part);
}

#ifdef __cplusplus
}
#endif

#endif /* OCCL_PARTITIONED_COLLECTIVES_H */
