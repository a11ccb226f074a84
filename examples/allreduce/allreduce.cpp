// Every rank contributes a vector; every rank gets the sum. Outside this repository, once OCCL is installed:
//   g++ -std=c++20 allreduce.cpp -o allreduce $(pkg-config --cflags --libs occl)
//   occlc compile ring.coll -D ranks=4 -o ring.plan.json
//   occl-run -n 4 ./allreduce ring.plan.json
#include <occl/occl.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(occlResult_t result) {
  if (result == occlSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", occlGetErrorString(result), occlGetLastError());
  std::exit(1);
}

int main(int argc, char **argv) {
  occlPlan_t plan;
  check(occlPlanLoad(argc > 1 ? argv[1] : "ring.plan.json", &plan));
  occlComm_t comm; // rank and size come from occl-run, torchrun, mpirun or srun
  check(occlCommInitFromEnv(&comm, nullptr));
  uint32_t rank, numRanks;
  check(occlCommRank(comm, &rank));
  check(occlCommSize(comm, &numRanks));

  std::vector<float> input(1000, float(rank + 1)), sum(1000);
  occlCall_t call = OCCL_CALL_INITIALIZER; // floats, sum
  call.plan = plan;
  call.sendBuffer = input.data();
  call.recvBuffer = sum.data();
  call.count = input.size();
  check(occlCall(comm, &call, nullptr));
  std::printf("rank %u of %u: sum[999] = %g\n", rank, numRanks, sum[999]);
  check(occlCommDestroy(comm));
  return sum[999] == numRanks * (numRanks + 1) / 2 ? 0 : 1;
}
