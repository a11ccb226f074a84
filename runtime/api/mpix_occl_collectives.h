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

static inline struct mpixParts mpixPartsOf(occlKind_t kind, const struct mpixComm *at, int root) {
  const uint64_t all = (uint64_t)at->size, ofRoot = at->rank == root ? 1 : 0;
  struct mpixParts parts;
  parts.input = kind == occlKindReduceScatter || kind == occlKindAllToAll ? all
                : kind == occlKindBroadcast                               ? ofRoot
                : kind == occlKindScatter                                 ? ofRoot * all
                                                                          : 1;
  parts.output = kind == occlKindAllGather || kind == occlKindAllToAll ? all
                 : kind == occlKindReduce                              ? ofRoot
                 : kind == occlKindGather                              ? ofRoot * all
                                                                       : 1;
  return parts;
}

/* The sides of this rank, whose parts are those; NULL buffers where it has none. */
static inline int mpixPlace(occlKind_t kind, struct mpixParts parts, struct mpixSide *from,
                            struct mpixSide *to) {
  if (!parts.input)
    from->buffer = NULL;
  if (!parts.output)
    to->buffer = NULL;
  const int mayBeInPlace = kind == occlKindAllReduce || (kind == occlKindReduce && parts.output);
  if (mayBeInPlace && from->buffer == MPI_IN_PLACE)
    from->buffer = to->buffer;
  if (from->buffer == MPI_IN_PLACE || to->buffer == MPI_IN_PLACE)
    return mpixFail(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the input of MPIX_Pallreduce_init, and of "
                                    "the root of MPIX_Preduce_init");
  return MPI_SUCCESS;
}

/* op: NULL of those that reduce nothing. */
static inline int mpixCollectiveInit(occlKind_t kind, struct mpixSide from, struct mpixSide to,
                                     const MPI_Op *op, int root, MPI_Comm comm, MPI_Info info,
                                     MPIX_Request *request) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  struct mpixComm *at = NULL;
  struct mpixBuffer input, output;
  struct mpixRequest made;
  int code = mpixAttached(comm, &at);
  if (code != MPI_SUCCESS)
    return code;
  if (!request)
    return mpixFail(MPI_ERR_ARG, "request is NULL");
  if (root < 0 || root >= at->size)
    return mpixFail(MPI_ERR_ROOT, "root is %d; there is no such rank of %d", root, at->size);
  const struct mpixParts parts = mpixPartsOf(kind, at, root);
  if ((parts.input &&
       (code = mpixBufferOf(from.partitions, from.count, from.type, &input)) != MPI_SUCCESS) ||
      (parts.output &&
       (code = mpixBufferOf(to.partitions, to.count, to.type, &output)) != MPI_SUCCESS) ||
      (code = mpixPartOf(&input, &output, parts, &call.count)) != MPI_SUCCESS ||
      (op &&
       (code = mpixOperation(*op, parts.input ? &input : &output, &call.op)) != MPI_SUCCESS) ||
      (code = mpixHint(info, "occl_rounds", &config.rounds)) != MPI_SUCCESS ||
      (code = mpixPlace(kind, parts, &from, &to)) != MPI_SUCCESS)
    return code;
  memset(&made, 0, sizeof made);
  made.isSend = made.isReceive = 0; /* OCCL knows which of both it has */
  call.kind = kind;
  call.sendBuffer = from.buffer;
  call.recvBuffer = to.buffer;
  call.dataType = parts.input ? input.flat.type : output.flat.type;
  call.root = (uint32_t)root;
  const occlResult_t result = occlPcollInit(at->occl, &call, parts.input ? from.partitions : 0,
                                            parts.output ? to.partitions : 0, &config, &made.part);
  return result == occlSuccess ? mpixAdopt(&made, at, request) : mpixResult(result, MPI_ERR_ARG);
}

/* recvbuf of all ranks: the reduction of all sendbufs; MPI_IN_PLACE. */
static inline int MPIX_Pallreduce_init(const void *sendbuf, void *recvbuf, int partitions,
                                       MPI_Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                       MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(occlKindAllReduce, mpixSideOf(sendbuf, partitions, count, type),
                            mpixSideOf(recvbuf, partitions, count, type), &op, 0, comm, info,
                            request);
}
/* buffer of all ranks: the root's, which alone marks. */
static inline int MPIX_Pbcast_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype type,
                                   int root, MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  const struct mpixSide side = mpixSideOf(buffer, partitions, count, type);
  return mpixCollectiveInit(occlKindBroadcast, side, side, NULL, root, comm, info, request);
}
/* recvbuf of the root, which alone asks: the reduction of all sendbufs; its own MPI_IN_PLACE. */
static inline int MPIX_Preduce_init(const void *sendbuf, void *recvbuf, int partitions,
                                    MPI_Count count, MPI_Datatype type, MPI_Op op, int root,
                                    MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(occlKindReduce, mpixSideOf(sendbuf, partitions, count, type),
                            mpixSideOf(recvbuf, partitions, count, type), &op, root, comm, info,
                            request);
}
/* recvbuf of rank r: the reduction of part r of all sendbufs. */
static inline int MPIX_Preduce_scatter_block_init(const void *sendbuf, int sendpartitions,
                                                  MPI_Count sendcount, void *recvbuf,
                                                  int recvpartitions, MPI_Count recvcount,
                                                  MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                  MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(
      occlKindReduceScatter, mpixSideOf(sendbuf, sendpartitions, sendcount, type),
      mpixSideOf(recvbuf, recvpartitions, recvcount, type), &op, 0, comm, info, request);
}
/* recvbuf of all ranks: the sendbufs of all, by rank. */
static inline int MPIX_Pallgather_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                       MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                       MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(
      occlKindAllGather, mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
      mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype), NULL, 0, comm, info, request);
}
/* Part q of rank r's sendbuf becomes part r of rank q's recvbuf. */
static inline int MPIX_Palltoall_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                      MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                      MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(
      occlKindAllToAll, mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
      mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype), NULL, 0, comm, info, request);
}
/* recvbuf of the root, which alone asks: the sendbufs of all, by rank. */
static inline int MPIX_Pgather_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                    MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                    MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                    MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(
      occlKindGather, mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
      mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype), NULL, root, comm, info, request);
}
/* recvbuf of rank r: part r of the sendbuf of the root, which alone marks. */
static inline int MPIX_Pscatter_init(const void *sendbuf, int sendpartitions, MPI_Count sendcount,
                                     MPI_Datatype sendtype, void *recvbuf, int recvpartitions,
                                     MPI_Count recvcount, MPI_Datatype recvtype, int root,
                                     MPI_Comm comm, MPI_Info info, MPIX_Request *request) {
  return mpixCollectiveInit(
      occlKindScatter, mpixSideOf(sendbuf, sendpartitions, sendcount, sendtype),
      mpixSideOf(recvbuf, recvpartitions, recvcount, recvtype), NULL, root, comm, info, request);
}

#ifdef __cplusplus
}
#endif

#endif /* MPIX_OCCL_COLLECTIVES_H */
