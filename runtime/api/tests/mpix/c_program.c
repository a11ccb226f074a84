/* The header in C, in a program of which another source has attached the communicator. */
#include "runtime/api/mpix_occl.h"

int runInC(MPI_Comm comm);

int runInC(MPI_Comm comm) {
  MPIX_Request request = MPIX_REQUEST_NULL;
  double values[6] = {0, 1, 2, 3, 4, 5};
  int rank = 0, flag = 0;
  MPI_Comm_rank(comm, &rank);
  int code = rank == 0
                 ? MPIX_Psend_init(values, 3, 2, MPI_DOUBLE, 1, 0, comm, MPI_INFO_NULL, &request)
                 : MPIX_Precv_init(values, 2, 3, MPI_DOUBLE, 0, 0, comm, MPI_INFO_NULL, &request);
  if (code == MPI_SUCCESS)
    code = MPIX_Start(&request);
  for (int p = 0; p < 3 && code == MPI_SUCCESS && rank == 0; ++p)
    code = MPIX_Pready(p, request);
  while (code == MPI_SUCCESS && !flag)
    code = MPIX_Test(&request, &flag, MPI_STATUS_IGNORE);
  return code == MPI_SUCCESS ? MPIX_Request_free(&request) : code;
}
