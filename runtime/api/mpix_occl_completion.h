/* Part of mpix_occl.h: the ends of epochs, of one request and of several, as MPI 4 names them.
 * Requests that are MPIX_REQUEST_NULL or have no epoch are passed over. A request stays after its
 * epoch, and may be started again. A request is for one thread at a time here. */
#ifndef MPIX_OCCL_COMPLETION_H
#define MPIX_OCCL_COMPLETION_H

#include "mpix_occl.h"

#include <sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of what was received, or was not. */
static inline void mpixSetStatus(MPI_Status *status, int source, int tag, uint64_t bytes) {
  if (status == MPI_STATUS_IGNORE)
    return;
  status->MPI_SOURCE = source;
  status->MPI_TAG = tag;
  MPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
  MPI_Status_set_cancelled(status, 0);
}
static inline void mpixSetEmpty(MPI_Status *status) {
  mpixSetStatus(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}
static inline MPI_Status *mpixStatusOf(MPI_Status statuses[], int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static inline int mpixHasEpoch(const MPIX_Request *request) {
  return request && *request && mpixIsActive(*request);
}

/* Ends the epoch, whose result is `code`. */
static inline int mpixEnd(MPIX_Request request, int code, MPI_Status *status) {
  if (request->why) {
    mpixFail(code, "%s", request->why);
    free(request->why);
    request->why = NULL;
  }
  __atomic_store_n(&request->isOver, 0, __ATOMIC_RELAXED);
  mpixSetActive(request, 0);
  if (request->isReceive)
    mpixSetStatus(status, request->peer, request->tag, request->bytes);
  else
    mpixSetEmpty(status);
  return code;
}

/* Whether the epoch is over, and then how it ended: until mpixEnd the request keeps that. */
static inline int mpixIsOver(MPIX_Request request) {
  occlResult_t result = occlSuccess;
  if (request->isOver)
    return 1;
  if (request->part)
    result = occlPtest(request->part);
  else if (__atomic_load_n(&request->left, __ATOMIC_ACQUIRE) != 0)
    result = occlInProgress;
  if (result == occlInProgress)
    return 0;
  request->code = mpixResult(result, MPI_ERR_REQUEST);
  if (request->code != MPI_SUCCESS && (request->why = (char *)malloc(sizeof mpixText)) != NULL)
    memcpy(request->why, mpixText, sizeof mpixText);
  __atomic_store_n(&request->isOver, 1, __ATOMIC_RELEASE);
  return 1;
}

/* --- Of one request. Without an epoch at once, with an empty status. */

static inline int MPIX_Wait(MPIX_Request *request, MPI_Status *status) {
  if (!mpixHasEpoch(request)) {
    mpixSetEmpty(status);
    return MPI_SUCCESS;
  }
  if ((*request)->part && !(*request)->isOver)
    return mpixEnd(*request, mpixResult(occlPwait((*request)->part), MPI_ERR_REQUEST), status);
  while (!mpixIsOver(*request))
    sched_yield();
  return mpixEnd(*request, (*request)->code, status);
}
static inline int MPIX_Test(MPIX_Request *request, int *flag, MPI_Status *status) {
  if (!flag)
    return mpixFail(MPI_ERR_ARG, "flag is NULL");
  *flag = !mpixHasEpoch(request) || mpixIsOver(*request);
  return *flag ? MPIX_Wait(request, status) : MPI_SUCCESS;
}

/* --- Of several. MPI_ERR_IN_STATUS: MPI_ERROR of each status says which failed, and the text is
 * that of the last one. Waits for one or some of several poll, and yield in between. */

/* The end of one, with its error in the status. */
static inline int mpixWaitOfSeveral(MPIX_Request *request, MPI_Status *status) {
  const int code = MPIX_Wait(request, status);
  if (status != MPI_STATUS_IGNORE)
    status->MPI_ERROR = code;
  return code;
}
static inline int mpixCheckSeveral(int number, const MPIX_Request requests[], int hasResults) {
  if (number < 0)
    return mpixFail(MPI_ERR_ARG, "count is %d", number);
  if (number > 0 && !requests)
    return mpixFail(MPI_ERR_REQUEST, "the requests are NULL");
  return hasResults ? MPI_SUCCESS : mpixFail(MPI_ERR_ARG, "a place for what has ended is NULL");
}

/* All of them, whatever becomes of one. */
static inline int MPIX_Waitall(int number, MPIX_Request requests[], MPI_Status statuses[]) {
  int code = mpixCheckSeveral(number, requests, 1);
  if (code != MPI_SUCCESS)
    return code;
  for (int i = 0; i < number; ++i)
    if (mpixWaitOfSeveral(&requests[i], mpixStatusOf(statuses, i)) != MPI_SUCCESS)
      code = MPI_ERR_IN_STATUS;
  return code;
}
/* *flag: whether all are over, and then ended. Else none is, and no status is set. */
static inline int MPIX_Testall(int number, MPIX_Request requests[], int *flag,
                               MPI_Status statuses[]) {
  const int code = mpixCheckSeveral(number, requests, flag != NULL);
  if (code != MPI_SUCCESS)
    return code;
  *flag = 1;
  for (int i = 0; i < number; ++i)
    if (mpixHasEpoch(&requests[i]) && !mpixIsOver(requests[i]))
      *flag = 0;
  return *flag ? MPIX_Waitall(number, requests, statuses) : MPI_SUCCESS;
}

/* *flag: whether one was over, or none has an epoch. *index: of the one that was ended, else
 * MPI_UNDEFINED. */
static inline int MPIX_Testany(int number, MPIX_Request requests[], int *index, int *flag,
                               MPI_Status *status) {
  const int code = mpixCheckSeveral(number, requests, index && flag);
  if (code != MPI_SUCCESS)
    return code;
  *index = MPI_UNDEFINED;
  *flag = 1;
  for (int i = 0; i < number; ++i) {
    if (!mpixHasEpoch(&requests[i]))
      continue;
    if (mpixIsOver(requests[i])) {
      *flag = 1;
      *index = i;
      return MPIX_Wait(&requests[i], status);
    }
    *flag = 0;
  }
  if (*flag)
    mpixSetEmpty(status);
  return MPI_SUCCESS;
}
static inline int MPIX_Waitany(int number, MPIX_Request requests[], int *index,
                               MPI_Status *status) {
  for (int flag = 0;; sched_yield()) {
    const int code = MPIX_Testany(number, requests, index, &flag, status);
    if (code != MPI_SUCCESS || flag)
      return code;
  }
}

/* All that are over are ended: *ended of them, at `indices`, each with a status, in this order.
 * *ended is MPI_UNDEFINED if none has an epoch. */
static inline int MPIX_Testsome(int number, MPIX_Request requests[], int *ended, int indices[],
                                MPI_Status statuses[]) {
  int code = mpixCheckSeveral(number, requests, ended && (indices || number == 0));
  if (code != MPI_SUCCESS)
    return code;
  *ended = MPI_UNDEFINED;
  for (int i = 0; i < number; ++i) {
    if (!mpixHasEpoch(&requests[i]))
      continue;
    if (*ended == MPI_UNDEFINED)
      *ended = 0;
    if (!mpixIsOver(requests[i]))
      continue;
    if (mpixWaitOfSeveral(&requests[i], mpixStatusOf(statuses, *ended)) != MPI_SUCCESS)
      code = MPI_ERR_IN_STATUS;
    indices[(*ended)++] = i;
  }
  return code;
}
static inline int MPIX_Waitsome(int number, MPIX_Request requests[], int *ended, int indices[],
                                MPI_Status statuses[]) {
  for (;; sched_yield()) {
    const int code = MPIX_Testsome(number, requests, ended, indices, statuses);
    if (code != MPI_SUCCESS || *ended != 0)
      return code;
  }
}

#ifdef __cplusplus
}
#endif

#endif /* MPIX_OCCL_COMPLETION_H */
