/* What `occl doctor` asks of the library: one that is of version 7.3. */
#include <stdint.h>

int occlGetVersion(uint32_t *major, uint32_t *minor);
int occlCommDestroy(void *comm);

int occlGetVersion(uint32_t *major, uint32_t *minor) {
  *major = 7;
  *minor = 3;
  return 0;
}

int occlCommDestroy(void *comm) {
  (void)comm;
  return 0;
}
