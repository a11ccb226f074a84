// Runs the tests of a program on all ranks of a job; each has to succeed on each.
#include "runtime/api/tests/mpix/ranks.h"

int main(int argc, char **argv) {
  int given = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  ::testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  int anyFailed = 1;
  MPI_Allreduce(&failed, &anyFailed, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  MPI_Finalize();
  const auto &afterMpi = occl::mpix::testing::afterMpi;
  return anyFailed || (afterMpi && afterMpi() != MPI_SUCCESS);
}
