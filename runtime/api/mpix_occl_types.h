/* What mpix_occl.h is made of, and not for programs: texts of errors, and what MPI's types,
 * operations and hints are to OCCL. */
#ifndef MPIX_OCCL_TYPES_H
#define MPIX_OCCL_TYPES_H

#include "occl_partitioned_collectives.h"

#include <errno.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One of each in a program, however many of its sources include this: a header has no library to
 * keep them in. Visible also if its libraries are compiled with -fvisibility=hidden. */
__attribute__((weak, visibility("default"))) int mpixKeyval = MPI_KEYVAL_INVALID;
__attribute__((weak, visibility("default"))) __thread char mpixText[2048] = "";

/* Keeps the text for MPIX_Error_text, and returns the class. */
__attribute__((format(printf, 2, 3))) static inline int mpixFail(int errorClass, const char *format,
                                                                 ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(mpixText, sizeof mpixText, format, arguments);
  va_end(arguments);
  return errorClass;
}

/* The class of a result of OCCL's, whose text is kept. `misuse` is that of occlInvalidArgument. */
static inline int mpixResult(occlResult_t result, int misuse) {
  if (result == occlSuccess)
    return MPI_SUCCESS;
  const int errorClass = result == occlInvalidArgument ? misuse
                         : result == occlMismatch      ? MPI_ERR_TRUNCATE
                         : result == occlAgain         ? MPI_ERR_NO_MEM
                         : result == occlInternalError ? MPI_ERR_INTERN
                                                       : MPI_ERR_OTHER;
  return mpixFail(errorClass, "%s: %s", occlGetErrorString(result), occlGetLastError());
}

/* --- Types. */

/* A type whose elements lie one behind the other, in the order in which they are named, and from
 * the begin of the buffer on. Isn't it so, `reason` says why. */
struct mpixFlat {
  occlDataType_t type;
  int isExact;       /* 0: elements are bytes of something else, which can be sent alone */
  uint64_t elements; /* of OCCL's type */
  uint64_t bytes;
  MPI_Aint extent; /* from one to the next, in bytes */
  const char *reason;
};

static inline occlDataType_t mpixInteger(size_t bytes, int isSigned) {
  return bytes == 8 ? (isSigned ? occlInt64 : occlUint64) : (isSigned ? occlInt32 : occlUint32);
}

static inline void mpixFlattenNamed(MPI_Datatype type, struct mpixFlat *flat) {
  const struct {
    MPI_Datatype mpi;
    occlDataType_t occl;
  } known[] = {
      {MPI_BYTE, occlUint8},
      {MPI_UNSIGNED_CHAR, occlUint8},
      {MPI_UINT8_T, occlUint8},
      {MPI_SIGNED_CHAR, occlInt8},
      {MPI_INT8_T, occlInt8},
      {MPI_INT, mpixInteger(sizeof(int), 1)},
      {MPI_UNSIGNED, mpixInteger(sizeof(unsigned), 0)},
      {MPI_LONG, mpixInteger(sizeof(long), 1)},
      {MPI_UNSIGNED_LONG, mpixInteger(sizeof(unsigned long), 0)},
      {MPI_LONG_LONG, mpixInteger(sizeof(long long), 1)},
      {MPI_UNSIGNED_LONG_LONG, mpixInteger(sizeof(unsigned long long), 0)},
      {MPI_INT32_T, occlInt32},
      {MPI_UINT32_T, occlUint32},
      {MPI_INT64_T, occlInt64},
      {MPI_UINT64_T, occlUint64},
      {MPI_AINT, mpixInteger(sizeof(MPI_Aint), 1)},
      {MPI_COUNT, mpixInteger(sizeof(MPI_Count), 1)},
      {MPI_OFFSET, mpixInteger(sizeof(MPI_Offset), 1)},
      {MPI_FLOAT, occlFloat32},
      {MPI_DOUBLE, occlFloat64},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
    if (known[i].mpi == type) {
      flat->type = known[i].occl;
      flat->elements = 1;
      flat->isExact = 1;
      return;
    }
  flat->type = occlUint8;
  flat->elements = flat->bytes;
  flat->isExact = 0;
}

/* Behind what there is come `number` of `inner`, which begin at `at` bytes. */
static inline void mpixAppend(struct mpixFlat *flat, MPI_Aint at, int64_t number,
                              const struct mpixFlat *inner) {
  if (inner->reason)
    flat->reason = inner->reason;
  if (number <= 0 || inner->bytes == 0)
    return;
  if (at != (MPI_Aint)flat->bytes || (number > 1 && inner->extent != (MPI_Aint)inner->bytes))
    flat->reason = "has gaps, or elements that are not in the order of their addresses";
  const uint64_t bytes = inner->bytes * (uint64_t)number;
  if (flat->bytes == 0) {
    flat->type = inner->type;
    flat->isExact = inner->isExact;
    flat->elements = inner->elements * (uint64_t)number;
  } else if (flat->isExact && inner->isExact && flat->type == inner->type) {
    flat->elements += inner->elements * (uint64_t)number;
  } else {
    flat->type = occlUint8;
    flat->isExact = 0;
    flat->elements = flat->bytes + bytes;
  }
  flat->bytes += bytes;
}

struct mpixContents {
  int combiner, numIntegers, numAddresses, numTypes;
  int *integers;
  MPI_Aint *addresses;
  MPI_Datatype *types;
};

/* Of a type that is made of one other; `inner` has been flattened. */
static inline void mpixFlattenBlocks(const struct mpixContents *is, const struct mpixFlat *inner,
                                     struct mpixFlat *flat) {
  const int *const n = is->integers;
  switch (is->combiner) {
  case MPI_COMBINER_DUP:
  case MPI_COMBINER_RESIZED:
    mpixAppend(flat, 0, 1, inner);
    return;
  case MPI_COMBINER_CONTIGUOUS:
    mpixAppend(flat, 0, n[0], inner);
    return;
  case MPI_COMBINER_VECTOR: /* count, length, stride */
    mpixAppend(flat, 0, n[0] <= 1 || n[2] == n[1] ? (int64_t)n[0] * n[1] : 0, inner);
    break;
  case MPI_COMBINER_HVECTOR:
    mpixAppend(flat, 0,
               n[0] <= 1 || is->addresses[0] == n[1] * inner->extent ? (int64_t)n[0] * n[1] : 0,
               inner);
    break;
  case MPI_COMBINER_INDEXED: /* count, lengths, displacements */
    for (int i = 0; i < n[0]; ++i)
      mpixAppend(flat, n[1 + n[0] + i] * inner->extent, n[1 + i], inner);
    return;
  case MPI_COMBINER_HINDEXED:
    for (int i = 0; i < n[0]; ++i)
      mpixAppend(flat, is->addresses[i], n[1 + i], inner);
    return;
  case MPI_COMBINER_INDEXED_BLOCK: /* count, length, displacements */
    for (int i = 0; i < n[0]; ++i)
      mpixAppend(flat, n[2 + i] * inner->extent, n[1], inner);
    return;
  case MPI_COMBINER_HINDEXED_BLOCK:
    for (int i = 0; i < n[0]; ++i)
      mpixAppend(flat, is->addresses[i], n[1], inner);
    return;
  default:
    flat->reason = "is made in a way that is not taken apart here";
    return;
  }
  if (flat->bytes == 0 && inner->bytes != 0 && (int64_t)n[0] * n[1] > 0)
    flat->reason = "has gaps between its blocks";
}

static inline void mpixFlatten(MPI_Datatype type, struct mpixFlat *flat);

static inline void mpixFlattenContents(const struct mpixContents *is, struct mpixFlat *flat) {
  struct mpixFlat inner;
  if (is->combiner != MPI_COMBINER_STRUCT && is->numTypes != 1) {
    flat->reason = "is made in a way that is not taken apart here";
    return;
  }
  if (is->combiner != MPI_COMBINER_STRUCT) {
    mpixFlatten(is->types[0], &inner);
    mpixFlattenBlocks(is, &inner, flat);
    return;
  }
  for (int i = 0; i < is->integers[0]; ++i) { /* count, lengths */
    mpixFlatten(is->types[i], &inner);
    mpixAppend(flat, is->addresses[i], is->integers[1 + i], &inner);
  }
}

static inline void mpixFreeContents(struct mpixContents *is) {
  for (int i = 0; i < is->numTypes && is->types; ++i) {
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(is->types[i], &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
      MPI_Type_free(&is->types[i]);
  }
  free(is->integers);
  free(is->addresses);
  free(is->types);
}

/* Of any type; `reason` is set if it cannot be. */
static inline void mpixFlatten(MPI_Datatype type, struct mpixFlat *flat) {
  struct mpixContents is;
  MPI_Aint lowest = 0, begin = 0, span = 0;
  int size = 0;
  memset(flat, 0, sizeof *flat);
  memset(&is, 0, sizeof is);
  MPI_Type_get_extent(type, &lowest, &flat->extent);
  MPI_Type_get_envelope(type, &is.numIntegers, &is.numAddresses, &is.numTypes, &is.combiner);
  if (is.combiner == MPI_COMBINER_NAMED) {
    MPI_Type_size(type, &size);
    MPI_Type_get_true_extent(type, &begin, &span);
    flat->bytes = (uint64_t)size;
    if (begin != 0 || span != size)
      flat->reason = "has gaps";
    mpixFlattenNamed(type, flat);
    return;
  }
  is.integers = (int *)calloc((size_t)is.numIntegers + 1, sizeof(int));
  is.addresses = (MPI_Aint *)calloc((size_t)is.numAddresses + 1, sizeof(MPI_Aint));
  is.types = (MPI_Datatype *)calloc((size_t)is.numTypes + 1, sizeof(MPI_Datatype));
  if (is.integers && is.addresses && is.types) {
    MPI_Type_get_contents(type, is.numIntegers, is.numAddresses, is.numTypes, is.integers,
                          is.addresses, is.types);
    mpixFlattenContents(&is, flat);
  } else {
    is.numTypes = 0;
    flat->reason = "takes more memory than there is to be looked at";
  }
  mpixFreeContents(&is);
}

/* A buffer of `partitions` partitions of `count` of the type. */
struct mpixBuffer {
  struct mpixFlat flat;
  uint64_t count; /* OCCL's elements of a partition */
  uint64_t all;   /* of all partitions */
};

static inline int mpixBufferOf(int partitions, MPI_Count count, MPI_Datatype type,
                               struct mpixBuffer *buffer) {
  if (partitions < 0)
    return mpixFail(MPI_ERR_ARG, "partitions is %d", partitions);
  if (count < 0)
    return mpixFail(MPI_ERR_COUNT, "count is %lld", (long long)count);
  if (type == MPI_DATATYPE_NULL)
    return mpixFail(MPI_ERR_TYPE, "the datatype is MPI_DATATYPE_NULL");
  mpixFlatten(type, &buffer->flat);
  const struct mpixFlat *const flat = &buffer->flat;
  if (!flat->reason && flat->extent != (MPI_Aint)flat->bytes &&
      (count > 1 || (partitions > 1 && count != 0)))
    buffer->flat.reason = "has an extent other than its size, so that there are gaps between two";
  if (flat->reason)
    return mpixFail(MPI_ERR_TYPE,
                    "the datatype %s; partitions are of elements one behind the other",
                    flat->reason);
  if (__builtin_mul_overflow((uint64_t)count, flat->elements, &buffer->count) ||
      __builtin_mul_overflow(buffer->count, (uint64_t)partitions, &buffer->all) ||
      buffer->all >> 58 != 0)
    return mpixFail(MPI_ERR_COUNT, "%d partitions of %lld elements are too many: at most 2^58",
                    partitions, (long long)count);
  return MPI_SUCCESS;
}

/* --- Operations, hints. */

static inline int mpixOperation(MPI_Op op, const struct mpixBuffer *buffer, occlRedOp_t *found) {
  if (!buffer->flat.isExact && buffer->all != 0)
    return mpixFail(MPI_ERR_TYPE, "this datatype can be sent, and not be reduced: integers of 8, "
                                  "32 and 64 bits, MPI_FLOAT and MPI_DOUBLE can");
  if (op == MPI_SUM)
    *found = occlSum;
  else if (op == MPI_PROD)
    *found = occlProd;
  else if (op == MPI_MIN)
    *found = occlMin;
  else if (op == MPI_MAX)
    *found = occlMax;
  else
    return mpixFail(MPI_ERR_OP, "the operation is none of MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX");
  return MPI_SUCCESS;
}

/* Leaves what is not in the info as it is. */
static inline int mpixHint(MPI_Info info, const char *key, uint64_t *value) {
  char text[32], *end; /* as long as any number */
  int isThere = 0, length = 0;
  if (info == MPI_INFO_NULL)
    return MPI_SUCCESS;
  MPI_Info_get_valuelen(info, key, &length, &isThere);
  if (!isThere)
    return MPI_SUCCESS;
  if (length >= (int)sizeof text)
    return mpixFail(MPI_ERR_INFO_VALUE, "%s has %d characters, which is no number", key, length);
  MPI_Info_get(info, key, (int)sizeof text - 1, text, &isThere);
  errno = 0;
  *value = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno == ERANGE)
    return mpixFail(MPI_ERR_INFO_VALUE, "%s is '%s', which is no number", key, text);
  return MPI_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif /* MPIX_OCCL_TYPES_H */
