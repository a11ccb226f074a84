/* Partitioned collectives with MPI's names: a part of mpix_occl.h, which includes it.
 *
 * MPI has none yet. These are like its persistent collectives, with a number of partitions beside
 * each count, which is of a partition: a buffer is that many partitions, all parts of all ranks one
 * behind the other, and ranks may divide theirs differently. The k-th request that a rank makes of
 * a communicator belongs to the k-th of the others; MPIX_Start in any order. MPIX_Pready is of the
 * input, MPIX_Parrived of the output; a rank that has none of one marks, or asks, nothing there,
 * and its arguments for it count for nothing. MPI_IN_PLACE where it is said; else buffers may be
 * where occl_collectives.h has them in place. */
#ifndef MPIX_OCCL_COLLECTIVES_H
#define MPIX_OCCL_COLLECTIVES_H

#include "mpix_occl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One side of a collective, as a program says it. */
struct mpixSide {
  void *buffer;
  int partitions;
  MPI_Count count;
  MPI_Datatype type;
};

/* How many parts of `count` elements, OCCL's, this rank's input and output have; 0: it has none. */
struct mpixParts {
  uint64_t input, output;
};

static inline struct mpixSide mpixSideOf(const void *buffer, int partitions, MPI_Count count,
                                         MPI_Datatype type) {
  struct mpixSide side;
  side.buffer = (void *)(uintptr_t)buffer;
  side.partitions = partitions;
  side.count = count;
  side.type = type;
  return side;
}

/* The elements of a part, which both sides say alike. */
static inline int mpixPartOf(const struct mpixBuffer *input, const struct mpixBuffer *output,
                             struct mpixParts parts, uint64_t *count) {
  const struct mpixBuffer *const one = parts.input ? input : output;
  const uint64_t number = parts.input ? parts.input : parts.output;
  *count = one->all / number;
  if (*count * number != one->all)
    return mpixFail(MPI_ERR_COUNT, "%llu elements cannot be divided among %llu ranks",
                    (unsigned long long)one->all, (unsigned long long)number);
  if (!parts.input || !parts.output)
    return MPI_SUCCESS;
  if (input->flat.type != output->flat.type)
    return mpixFail(MPI_ERR_TYPE, "input and output are made of different types");
  if (output->all / parts.output != *count || output->all % parts.output != 0)
    return mpixFail(MPI_ERR_COUNT,
                    "the input has %llu elements for %llu parts, and the output %llu for %llu",
                    (unsigned long long)input->all, (unsigned long long)parts.input,
                    (unsigned long long)output->all, (unsigned long long)parts.output);
  return MPI_SUCCESS;
}

/* op: NULL of those that reduce nothing. */
static inline int mpixCollectiveInit(occlKind_t kind, struct mpixSide from, struct mpixSide to,
                                     struct mpixParts parts, const MPI_Op *op, int root,
                                     struct mpixComm *at, MPI_Info info, MPIX_Request *request) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  struct mpixBuffer input, output;
  struct mpixRequest made;
  int code = MPI_SUCCESS;
  if (!request)
    return mpixFail(MPI_ERR_ARG, "request is NULL");
  if (root < 0 || root >= at->size)
    return mpixFail(MPI_ERR_ROOT, "root is %d; there is no such rank of %d", root, at->size);
  if ((parts.input &&
       (code = mpixBufferOf(from.partitions, from.count, from.type, &input)) != MPI_SUCCESS) ||
      (parts.output &&
       (code = mpixBufferOf(to.partitions, to.count, to.type, &output)) != MPI_SUCCESS) ||
      (code = mpixPartOf(&input, &output, parts, &call.count)) != MPI_SUCCESS ||
      (op &&
       (code = mpixOperation(*op, parts.input ? &input : &output, &call.op)) != MPI_SUCCESS) ||
      (code = mpixHint(info, "occl_rounds", &config.rounds)) != MPI_SUCCESS)
    return code;
  if (from.buffer == MPI_IN_PLACE || to.buffer == MPI_IN_PLACE)
    return mpixFail(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the input of MPIX_Pallreduce_init, and of "
                                    "the root of MPIX_Preduce_init");
  memset(&made, 0, sizeof made);
  made.isSend = made.isReceive = 0; /* OCCL knows which of both it has */
  call.kind = kind;
  call.sendBuffer = parts.input ? from.buffer : NULL;
  call.recvBuffer = parts.output ? to.buffer : NULL;
  call.dataType = parts.input ? input.flat.type : output.flat.type;
  call.root = (uint32_t)root;
  const occlResult_t result = occlPcollInit(at->occl, &call, parts.input ? from.partitions : 0,
                                            parts.output ? to.partitions : 0, &config, &made.part);
  return result == occlSuccess ? mpixAdopt(&made, at, request) : mpixResult(result, MPI_ERR_ARG);
}

static inline struct mpixParts mpixPartsOf(uint64_t input, uint64_t output) {
  struct mpixParts parts;
  parts.input = input;
  parts.output = output;
  return parts;
}

/* recvbuf of all ranks: the reduction of all sendbufs; MPI_IN_PLACE. */
static inline int MPIX_Pallreduce_init(const void *sendbuf, void *recvbuf, int partitions,
                                       MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                       MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  return mpixCollectiveInit(
      occlKindAllReduce,
      mpixSideOf(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, partitions, count, type),
      mpixSideOf(recvbuf, partitions, count, type), mpixPartsOf(1, 1), &op, 0, at, info, request);
}
/* buffer of all ranks: the root's, which alone marks. */
static inline int MPIX_Pbcast_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype type,
                                   int root, MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  const struct mpixSide side = mpixSideOf(buffer, partitions, count, type);
  return mpixCollectiveInit(occlKindBroadcast, side, side, mpixPartsOf(at->rank == root, 1), NULL,
                            root, at, info, request);
}
/* recvbuf of the root, which alone asks: the reduction of all sendbufs; its own MPI_IN_PLACE. */
static inline int MPIX_Preduce_init(const void *sendbuf, void *recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                                    MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  const int isRoot = at->rank == root;
  return mpixCollectiveInit(
      occlKindReduce,
      mpixSideOf(isRoot && sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, partitions, count, type),
      mpixSideOf(isRoot ? recvbuf : NULL, partitions, count, type), mpixPartsOf(1, isRoot), &op,
      root, at, info, request);
}
/* recvbuf of rank r: the reduction of part r of all sendbufs. */
static inline int MPIX_Preduce_scatter_block_init(const void *sendbuf, int sendpartitions,
                                                  MPI_Count sendcount, void *recvbuf,
                                                  int recvpartitions, MPI_Count recvcount,
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                  MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  return mpixCollectiveInit(occlKindReduceScatter,
                            mpixSideOf(sendbuf, sendpartitions, sendcount, type),
                            mpixSideOf(recvbuf, recvpartitions, recvcount, type),
                            mpixPartsOf((uint64_t)at->size, 1), &op, 0, at, info, request);
}
/* recvbuf of all ranks: the sendbufs of all, by rank. */
static inline int MPIX_Pallgather_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                       MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  return mpixCollectiveInit(occlKindAllGather,
                            mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
                            mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype),
                            mpixPartsOf(1, (uint64_t)at->size), NULL, 0, at, info, request);
}
/* Part q of rank r's sendbuf becomes part r of rank q's recvbuf. */
static inline int MPIX_Palltoall_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                      MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                      MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  return mpixCollectiveInit(
      occlKindAllToAll, mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
      mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype),
      mpixPartsOf((uint64_t)at->size, (uint64_t)at->size), NULL, 0, at, info, request);
}
/* recvbuf of the root, which alone asks: the sendbufs of all, by rank. */
static inline int MPIX_Pgather_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                    MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                    MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                    MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  const uint64_t parts = at->rank == root ? (uint64_t)at->size : 0;
  return mpixCollectiveInit(occlKindGather,
                            mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
                            mpixSideOf(parts ? recvbuf : NULL, recvpartitions, recvcount, recvtype),
                            mpixPartsOf(1, parts), NULL, root, at, info, request);
}
/* recvbuf of rank r: part r of the sendbuf of the root, which alone marks. */
static inline int MPIX_Pscatter_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                     MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                     MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  const int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  const uint64_t parts = at->rank == root ? (uint64_t)at->size : 0;
  return mpixCollectiveInit(occlKindScatter,
                            mpixSideOf(parts ? sendbuf : NULL, sendpartitions, sendcount, sendtype),
                            mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype),
                            mpixPartsOf(parts, 1), NULL, root, at, info, request);
}

#ifdef __cplusplus
}
#endif

#endif /* MPIX_OCCL_COLLECTIVES_H */
