/* Partitioned communication with MPI's names, over OCCL: MPI starts the job, OCCL moves the data.
 * A program includes this beside mpi.h and links MPI and liboccl.so.0.
 *
 *   MPIX_Comm_attach(MPI_COMM_WORLD, NULL);   all ranks, once; they are on one machine
 *   MPIX_Psend_init(field, 64, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
 *   MPIX_Start(&request);
 *   MPIX_Pready(p, request);                  by any threads; for each partition
 *   MPIX_Wait(&request, MPI_STATUS_IGNORE);
 *   MPIX_Request_free(&request);
 *
 * Functions mean what MPI 4 says of those without the X, and occl_partitioned.h is the reference
 * for shapes, progress, threads and ownership. They take requests of their own type alone, and
 * match each other alone. The calling thread calls MPI where a communicator or a request is made,
 * and to fill a status that is given. So with MPI_THREAD_FUNNELED any thread may mark, ask, and
 * wait with MPI_STATUS_IGNORE; the main thread does the rest.
 *
 * Errors. A function returns MPI_SUCCESS or a class of MPI's, and calls no error handler;
 * MPIX_Error_text says what is wrong. Misuse changes nothing: MPI_ERR_ARG, _COUNT, _RANK, _TAG,
 * _TYPE, _OP, _BUFFER, _COMM, _ROOT, _REQUEST, _INFO_VALUE. MPI_ERR_NO_MEM: free other requests
 * first. Else the communicator has failed on all ranks: MPI_ERR_TRUNCATE if two sides do not fit,
 * MPI_ERR_OTHER after a deadline, the end of a rank, or an abort.
 *
 * Types. Those whose elements lie one behind the other, in order, derived or not; what is sent is
 * what they are made of, so the sides may describe it differently. MPI_BOTTOM is no buffer.
 *
 * Hints. occl_partitions_per_message (of sends), occl_rounds (of collectives): see
 * occlPartConfig_t. Others are ignored. */
#ifndef MPIX_OCCL_H
#define MPIX_OCCL_H

#include "mpix_occl_types.h"

#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A persistent send, receive or collective, until MPIX_Request_free. */
typedef struct mpixRequest *MPIX_Request;
#define MPIX_REQUEST_NULL ((MPIX_Request)NULL)

struct mpixRequest {
  occlPart_t part;     /* NULL: of MPI_PROC_NULL */
  struct mpixComm *at; /* that it keeps; NULL with part */
  int isReceive, isSend;
  int isActive; /* from its start to its end; threads read it meanwhile */
  /* Of an epoch that is over, but not ended: a test of several found it so. Its error, and why.
   * Threads read the first two meanwhile. */
  int isOver, code;
  char *why;
  int partitions;
  int peer, tag; /* of a receive, for its status, as is the next */
  uint64_t bytes;
  /* Of a send to MPI_PROC_NULL, whose epoch ends as all are marked: how many are not, and a byte
   * for each partition that is. */
  int left;
  unsigned char *marks;
};

/* Why the last call of this thread that failed did; "" before. Valid until its next one. */
static inline const char *MPIX_Error_text(void) { return mpixText; }

/* --- Communicators. */

struct mpixComm {
  occlComm_t occl;
  int rank, size;
  int users; /* the attribute, and each request: MPI frees communicators before their requests */
};

static inline void mpixKeep(struct mpixComm *it) {
  __atomic_fetch_add(&it->users, 1, __ATOMIC_RELAXED);
}
/* Calls no MPI: it may have been finalized. */
static inline void mpixLetGo(struct mpixComm *it) {
  if (__atomic_fetch_sub(&it->users, 1, __ATOMIC_ACQ_REL) != 1)
    return;
  occlCommDestroy(it->occl);
  free(it);
}

static inline int mpixForget(MPI_Comm comm, int keyval, void *attached, void *extra) {
  (void)comm, (void)keyval, (void)extra;
  mpixLetGo((struct mpixComm *)attached);
  return MPI_SUCCESS;
}

static inline int mpixAttached(MPI_Comm comm, struct mpixComm **found) {
  int isThere = 0;
  *found = NULL;
  if (comm == MPI_COMM_NULL)
    return mpixFail(MPI_ERR_COMM, "the communicator is MPI_COMM_NULL");
  if (mpixKeyval != MPI_KEYVAL_INVALID)
    MPI_Comm_get_attr(comm, mpixKeyval, found, &isThere);
  if (!isThere)
    return mpixFail(MPI_ERR_COMM, "MPIX_Comm_attach has not been called for this communicator");
  return MPI_SUCCESS;
}

/* All ranks are in one memory, which MPI knows. */
static inline int mpixIsWithinOneMachine(MPI_Comm comm, int size) {
  MPI_Comm near = MPI_COMM_NULL;
  int together = 0;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  MPI_Comm_size(near, &together);
  MPI_Comm_free(&near);
  return together == size;
}

/* Whether no rank's pointer is NULL, the same on all. A rank that returned by itself would leave the
 * others in what all do next. */
static inline int mpixAllHave(MPI_Comm comm, const void *mine) {
  int isMine = mine != NULL, areAll = 0;
  MPI_Allreduce(&isMine, &areAll, 1, MPI_INT, MPI_LAND, comm);
  return areAll;
}

/* Gives the communicator what its partitioned requests need, until MPIX_Comm_detach or
 * MPI_Comm_free, and until those are freed: collective, one thread at a time. Duplicates have none.
 * config may be NULL; timeoutMs in it is the deadline of every epoch. MPI_ERR_COMM: it has it
 * already, is an inter-communicator, or of several machines. MPI_ERR_NO_MEM, on all ranks: one of
 * them has no memory. */
static inline int MPIX_Comm_attach(MPI_Comm comm, const occlConfig_t *config) {
  struct mpixComm *it = NULL;
  char name[64] = "";
  int isBetween = 0;
  if (comm == MPI_COMM_NULL)
    return mpixFail(MPI_ERR_COMM, "the communicator is MPI_COMM_NULL");
  if (mpixAttached(comm, &it) == MPI_SUCCESS)
    return mpixFail(MPI_ERR_COMM, "MPIX_Comm_attach has been called for this communicator");
  MPI_Comm_test_inter(comm, &isBetween);
  if (isBetween)
    return mpixFail(MPI_ERR_COMM,
                    "this is an inter-communicator, which has no partitioned requests");
  it = (struct mpixComm *)calloc(1, sizeof *it);
  if (!mpixAllHave(comm, it)) {
    const char *which = it ? "on another rank" : "on this one";
    free(it);
    return mpixFail(MPI_ERR_NO_MEM, "there is no memory %s", which);
  }
  MPI_Comm_rank(comm, &it->rank);
  MPI_Comm_size(comm, &it->size);
  if (!mpixIsWithinOneMachine(comm, it->size)) {
    free(it);
    return mpixFail(MPI_ERR_COMM, "this communicator is of several machines, between which there "
                                  "are no partitioned requests yet");
  }
  if (it->rank == 0) /* other sandboxes may have the same numbers of processes */
    snprintf(name, sizeof name, "mpix-%ld-%.0f-%llx", (long)getpid(), MPI_Wtime() * 1e9,
             (unsigned long long)(uintptr_t)it);
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
  const occlResult_t made =
      occlCommInitRank(&it->occl, (uint32_t)it->size, (uint32_t)it->rank, name, config);
  if (made != occlSuccess) {
    free(it);
    return mpixResult(made, MPI_ERR_ARG);
  }
  it->users = 1;
  if (mpixKeyval == MPI_KEYVAL_INVALID)
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpixForget, &mpixKeyval, NULL);
  return MPI_Comm_set_attr(comm, mpixKeyval, it);
}

/* Of all ranks. Requests that are left live on, and what they need with the last of them. */
static inline int MPIX_Comm_detach(MPI_Comm comm) {
  struct mpixComm *it = NULL;
  const int code = mpixAttached(comm, &it);
  return code == MPI_SUCCESS ? MPI_Comm_delete_attr(comm, mpixKeyval) : code;
}

/* --- Sends and receives. */

/* `at` has made it, or is NULL. */
static inline int mpixAdopt(const struct mpixRequest *made, struct mpixComm *at,
                            MPIX_Request *request) {
  MPIX_Request it = (MPIX_Request)malloc(sizeof *it + (made->part ? 0 : (size_t)made->partitions));
  if (!it) {
    occlPfree(made->part);
    return mpixFail(MPI_ERR_NO_MEM, "there is no memory");
  }
  *it = *made;
  it->at = at;
  it->marks = (unsigned char *)(it + 1);
  if (at)
    mpixKeep(at);
  *request = it;
  return MPI_SUCCESS;
}

static inline int mpixCheckPeer(int isSend, int peer, int tag, const struct mpixComm *at) {
  if (peer == MPI_ANY_SOURCE)
    return mpixFail(MPI_ERR_RANK, "%s is MPI_ANY_SOURCE; partitioned requests have no wildcards",
                    isSend ? "dest" : "source");
  if (peer != MPI_PROC_NULL && (peer < 0 || peer >= at->size))
    return mpixFail(MPI_ERR_RANK, "%s is %d; there is no such rank of %d",
                    isSend ? "dest" : "source", peer, at->size);
  if (tag == MPI_ANY_TAG)
    return mpixFail(MPI_ERR_TAG, "tag is MPI_ANY_TAG; partitioned requests have no wildcards");
  if (tag < 0)
    return mpixFail(MPI_ERR_TAG, "tag is %d", tag);
  return MPI_SUCCESS;
}

static inline int mpixTransferInit(int isSend, void *buffer, int partitions, MPI_Count count,
                                   MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                                   MPI_Info info, MPIX_Request *request) {
  struct mpixComm *at = NULL;
  struct mpixBuffer shape;
  struct mpixRequest made;
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  int code;
  if (!request)
    return mpixFail(MPI_ERR_ARG, "request is NULL");
  if ((code = mpixAttached(comm, &at)) != MPI_SUCCESS ||
      (code = mpixCheckPeer(isSend, peer, tag, at)) != MPI_SUCCESS ||
      (code = mpixBufferOf(partitions, count, type, &shape)) != MPI_SUCCESS ||
      (isSend && (code = mpixHint(info, "occl_partitions_per_message",
                                  &config.partitionsPerMessage)) != MPI_SUCCESS))
    return code;
  memset(&made, 0, sizeof made);
  made.isSend = isSend;
  made.isReceive = !isSend;
  made.partitions = partitions;
  made.peer = peer;
  made.tag = peer == MPI_PROC_NULL ? MPI_ANY_TAG : tag;
  if (peer == MPI_PROC_NULL)
    return mpixAdopt(&made, NULL, request);
  if (!buffer && shape.all != 0)
    return mpixFail(MPI_ERR_BUFFER, "the buffer is NULL, or MPI_BOTTOM, which is none");
  made.bytes = shape.flat.elements ? shape.all / shape.flat.elements * shape.flat.bytes : 0;
  const occlResult_t result = isSend
                                  ? occlPsendInit(at->occl, buffer, partitions, shape.count,
                                                  shape.flat.type, peer, tag, &config, &made.part)
                                  : occlPrecvInit(at->occl, buffer, partitions, shape.count,
                                                  shape.flat.type, peer, tag, &config, &made.part);
  return result == occlSuccess ? mpixAdopt(&made, at, request) : mpixResult(result, MPI_ERR_ARG);
}

/* Local. count is of a partition. With MPI_PROC_NULL nothing is sent, and the
 * epoch ends when all partitions are marked, as those of others do. */
static inline int MPIX_Psend_init(const void *buffer, int partitions, MPI_Count count,
                                  MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                                  MPI_Info info, MPIX_Request *request) {
  return mpixTransferInit(1, (void *)(uintptr_t)buffer, partitions, count, type, dest, tag, comm,
                          info, request);
}
static inline int MPIX_Precv_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype type,
                                  int source, int tag, MPI_Comm comm, MPI_Info info,
                                  MPIX_Request *request) {
  return mpixTransferInit(0, buffer, partitions, count, type, source, tag, comm, info, request);
}

/* --- Epochs. */

static inline int mpixIsActive(MPIX_Request request) {
  return __atomic_load_n(&request->isActive, __ATOMIC_ACQUIRE);
}
static inline void mpixSetActive(MPIX_Request request, int isActive) {
  __atomic_store_n(&request->isActive, isActive, __ATOMIC_RELEASE);
}
/* Has an epoch of which OCCL knows nothing, or no more. */
static inline int mpixIsKeptActive(MPIX_Request request) {
  return mpixIsActive(request) && (!request->part || request->isOver);
}
/* A test of several has found that it is over, and how: then code and why stay until it ends. */
static inline int mpixIsKnownOver(MPIX_Request request) {
  return __atomic_load_n(&request->isOver, __ATOMIC_ACQUIRE);
}
/* MPI_SUCCESS unless it is none. */
static inline int mpixIsThere(const MPIX_Request *request) {
  return request && *request ? MPI_SUCCESS
                             : mpixFail(MPI_ERR_REQUEST, "the request is MPIX_REQUEST_NULL");
}

static inline int MPIX_Start(MPIX_Request *request) {
  const int code = mpixIsThere(request);
  if (code != MPI_SUCCESS)
    return code;
  if (mpixIsKeptActive(*request))
    return mpixFail(MPI_ERR_REQUEST, "the request has been started, and has not ended");
  if (!(*request)->part && (*request)->isSend) {
    memset((*request)->marks, 0, (size_t)(*request)->partitions);
    __atomic_store_n(&(*request)->left, (*request)->partitions, __ATOMIC_RELAXED);
  }
  const occlResult_t started = (*request)->part ? occlPstart((*request)->part) : occlSuccess;
  if (started == occlSuccess)
    mpixSetActive(*request, 1);
  return mpixResult(started, MPI_ERR_REQUEST);
}
/* In turn; those behind the first error are not started. */
static inline int MPIX_Startall(int number, MPIX_Request requests[]) {
  int code = number < 0 ? mpixFail(MPI_ERR_ARG, "count is %d", number) : MPI_SUCCESS;
  for (int i = 0; i < number && code == MPI_SUCCESS; ++i)
    code = MPIX_Start(&requests[i]);
  return code;
}

/* Returns when the other side has started, too. Nothing needs it. */
static inline int MPIX_Pbuf_prepare(MPIX_Request request) {
  const int code = mpixIsThere(&request);
  if (code != MPI_SUCCESS)
    return code;
  if (!request->part && !mpixIsActive(request))
    return mpixFail(MPI_ERR_REQUEST, "the request has not been started");
  /* The other side had started an epoch that has ended. OCCL has none any more. */
  if (request->part && (request->isSend || request->isReceive) && mpixIsKnownOver(request))
    return request->code == MPI_SUCCESS
               ? MPI_SUCCESS
               : mpixFail(request->code, "%s",
                          request->why ? request->why : "the epoch has failed");
  return mpixResult(request->part ? occlPprepare(request->part) : occlSuccess, MPI_ERR_REQUEST);
}
static inline int MPIX_Pbuf_prepareall(int number, const MPIX_Request requests[]) {
  int code = number < 0 ? mpixFail(MPI_ERR_ARG, "count is %d", number) : MPI_SUCCESS;
  for (int i = 0; i < number && code == MPI_SUCCESS; ++i)
    code = MPIX_Pbuf_prepare(requests[i]);
  return code;
}

/* What OCCL does, where there is nobody to send to: marks those of the list, or, without one,
 * `number` from `first` on. */
static inline int mpixMarkNobody(MPIX_Request request, const int *list, int64_t first,
                                 int64_t number) {
  int made = 0;
  int64_t again = -1;
  if (!request->isSend)
    return mpixFail(MPI_ERR_REQUEST, "only partitions of a send are marked ready");
  for (int64_t i = 0; i < number; ++i) {
    const int64_t p = list ? list[i] : first + i;
    if (p < 0 || p >= request->partitions)
      return mpixFail(MPI_ERR_ARG, "there is no partition %lld of %d", (long long)p,
                      request->partitions);
  }
  if (!mpixIsActive(request))
    return mpixFail(MPI_ERR_REQUEST, "the request has not been started");
  for (int64_t i = 0; i < number; ++i) {
    const int64_t p = list ? list[i] : first + i;
    if (!__atomic_exchange_n(&request->marks[p], 1, __ATOMIC_ACQ_REL))
      ++made;
    else if (again < 0)
      again = p;
  }
  if (made) /* The last access: if none is left another thread may free the request. */
    __atomic_fetch_sub(&request->left, made, __ATOMIC_ACQ_REL);
  return again < 0 ? MPI_SUCCESS
                   : mpixFail(MPI_ERR_ARG, "partition %lld is ready already in this epoch",
                              (long long)again);
}
/* The class of a mark that is refused: of the request, or of what is said of it. Asked before the
 * mark, behind which another thread may see the end and free the request. */
static inline int mpixMisuse(MPIX_Request request) {
  return request->isReceive || !mpixIsActive(request) ? MPI_ERR_REQUEST : MPI_ERR_ARG;
}

static inline int MPIX_Pready_range(int first, int last, MPIX_Request request) {
  const int code = mpixIsThere(&request);
  if (code != MPI_SUCCESS)
    return code;
  if (!request->part && last < first)
    return mpixFail(MPI_ERR_ARG, "there are no partitions %d to %d", first, last);
  if (!request->part)
    return mpixMarkNobody(request, NULL, first, (int64_t)last - first + 1);
  const int misuse = mpixMisuse(request);
  return mpixResult(occlPreadyRange(request->part, first, last), misuse);
}
/* All but those that are ready already; none if one is no partition. */
static inline int MPIX_Pready_list(int length, const int partitions[], MPIX_Request request) {
  int64_t few[64], *list = few;
  int code = mpixIsThere(&request);
  if (code == MPI_SUCCESS && (length < 0 || (length > 0 && !partitions)))
    code = mpixFail(MPI_ERR_ARG, "the length is %d%s", length, length < 0 ? "" : ", the list NULL");
  if (code != MPI_SUCCESS)
    return code;
  if (!request->part)
    return mpixMarkNobody(request, partitions, 0, length);
  if (length > 64 && !(list = (int64_t *)malloc((size_t)length * sizeof *list)))
    return mpixFail(MPI_ERR_NO_MEM, "there is no memory");
  for (int i = 0; i < length; ++i)
    list[i] = partitions[i];
  const int misuse = mpixMisuse(request);
  code = mpixResult(occlPreadyList(request->part, (uint64_t)length, list), misuse);
  if (list != few)
    free(list);
  return code;
}
static inline int MPIX_Pready(int partition, MPIX_Request request) {
  const int code = mpixIsThere(&request);
  if (code != MPI_SUCCESS)
    return code;
  if (!request->part)
    return mpixMarkNobody(request, NULL, partition, 1);
  const int misuse = mpixMisuse(request);
  return mpixResult(occlPready(request->part, partition), misuse);
}

/* *flag: whether the partition may be accessed; of MPIX_REQUEST_NULL it may. */
static inline int MPIX_Parrived(MPIX_Request request, int partition, int *flag) {
  int32_t arrived = 1;
  if (!flag)
    return mpixFail(MPI_ERR_ARG, "flag is NULL");
  if (request && !request->part && !request->isReceive)
    return mpixFail(MPI_ERR_REQUEST, "only partitions of a receive arrive");
  if (request && !request->part && (partition < 0 || partition >= request->partitions))
    return mpixFail(MPI_ERR_ARG, "there is no partition %d of %d", partition, request->partitions);
  const int misuse = request && request->isSend ? MPI_ERR_REQUEST : MPI_ERR_ARG;
  occlResult_t asked =
      request && request->part ? occlParrived(request->part, partition, &arrived) : occlSuccess;
  /* A failure of the communicator after all had arrived. */
  if (asked != occlSuccess && asked != occlInvalidArgument && mpixIsKnownOver(request) &&
      request->code == MPI_SUCCESS)
    asked = occlSuccess;
  if (asked == occlSuccess)
    *flag = arrived;
  return mpixResult(asked, misuse);
}

/* MPI_ERR_REQUEST: it has an epoch. Else *request is MPIX_REQUEST_NULL afterwards. */
static inline int MPIX_Request_free(MPIX_Request *request) {
  const int code = mpixIsThere(request);
  if (code != MPI_SUCCESS)
    return code;
  if (mpixIsKeptActive(*request))
    return mpixFail(MPI_ERR_REQUEST, "the request is not over: wait for it before it is freed");
  const occlResult_t freed = occlPfree((*request)->part);
  if (freed != occlSuccess)
    return mpixResult(freed, MPI_ERR_REQUEST);
  if ((*request)->at)
    mpixLetGo((*request)->at);
  free(*request);
  *request = MPIX_REQUEST_NULL;
  return MPI_SUCCESS;
}
/* Always MPI_ERR_REQUEST: MPI has no cancelled partitioned requests. */
static inline int MPIX_Cancel(MPIX_Request *request) {
  const int code = mpixIsThere(request);
  return code != MPI_SUCCESS
             ? code
             : mpixFail(MPI_ERR_REQUEST, "partitioned requests cannot be cancelled; wait for it");
}

#ifdef __cplusplus
}
#endif

#include "mpix_occl_completion.h"

#include "mpix_occl_collectives.h"

#endif /* MPIX_OCCL_H */
