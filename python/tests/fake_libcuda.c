/* A libcuda.so.1 with two devices and no work: it counts what is alive, and refuses what is called without a context.
 * Handles are small numbers; memory from 0x10000000 on is device 1's, from 0x20000000 on managed. */
#include <stdint.h>

static int contexts[8], depth, events, streams, initialised;
static int stand(void) { return initialised && depth > 0 ? 0 : 201; }

int cuInit(unsigned flags) { return initialised = 1, (int)flags; }
int cuDeviceGetCount(int *count) { return *count = 2, initialised ? 0 : 3; }
int cuDeviceGet(int *device, int number) { return *device = number + 40, number < 2 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
  *context = &contexts[device - 40];
  return contexts[device - 40]++ == 0 ? 0 : 999; /* once each */
}
int cuCtxPushCurrent_v2(void *context) { return depth++, context ? 0 : 201; }
int cuCtxPopCurrent_v2(void **context) { return *context = 0, depth-- > 0 ? 0 : 201; }
int cuPointerGetAttribute(void *data, int attribute, uint64_t pointer) {
  if (pointer < 0x10000000)
    return 1;
  *(unsigned *)data = attribute == 2 ? 2 : attribute == 9 ? 1 : pointer >= 0x20000000;
  return attribute == 2 || attribute == 8 || attribute == 9 ? 0 : 1;
}
int cuEventCreate(void **event, unsigned flags) { return *event = (void *)0x77, events++, flags == 2 ? stand() : 1; }
int cuEventRecord(void *event, void *stream) { return event != (void *)0x77 || stream == (void *)0xbad ? 400 : stand(); }
int cuEventQuery(void *event) { return event == (void *)0x77 ? 600 : stand(); }
int cuEventDestroy_v2(void *event) { return events--, event ? stand() : 1; }
int cuStreamCreate(void **stream, unsigned flags) { return *stream = (void *)0x88, streams++, flags == 1 ? stand() : 1; }
int cuStreamDestroy_v2(void *stream) { return streams--, stream ? stand() : 1; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return event && stream != (void *)0xbad && !flags ? stand() : 400; }
int cuStreamIsCapturing(void *stream, int *status) { return *status = stream == (void *)0xca, stand(); }
int cuStreamSynchronize(void *stream) { return stream == (void *)0xbad ? 700 : stand(); }
int cuGetErrorName(int error, const char **name) { return *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR", 0; }
int alive(void) { return events + streams + depth; }
