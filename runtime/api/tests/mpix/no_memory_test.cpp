// mpix_occl.h where a rank has no memory.
#include <cstdlib>
#include <stdlib.h> // before its calloc is renamed

namespace {

bool hasMemory = true;

void *callocOfTest(std::size_t number, std::size_t bytes) {
  return hasMemory ? std::calloc(number, bytes) : nullptr;
}

} // namespace

#define calloc callocOfTest
#include "runtime/api/tests/mpix/ranks.h"
#undef calloc

namespace occl::mpix::testing {
namespace {

/// The others would wait for it in what all ranks do.
TEST(NoMemory, AllRanksAreRefused) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  hasMemory = rankOf(comm) != 1;
  const int code = MPIX_Comm_attach(comm, nullptr);
  hasMemory = true;
  EXPECT_EQ(code, MPI_ERR_NO_MEM);
  EXPECT_TRUE(hasText(rankOf(comm) == 1 ? "no memory on this one" : "no memory on another rank"))
      << MPIX_Error_text();
  EXPECT_EQ(MPIX_Comm_attach(comm, nullptr), MPI_SUCCESS) << "later: " << MPIX_Error_text();
  MPI_Comm_free(&comm);
}

} // namespace
} // namespace occl::mpix::testing
