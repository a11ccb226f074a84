// For tests of mpix_occl.h: ranks 0 and 1 of a job that mpirun has started, and a communicator of
// theirs for each test.
#pragma once

#include "runtime/api/mpix_occl.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <string>

namespace occl::mpix::testing {

/// What a test leaves to be done behind MPI_Finalize: MPI_SUCCESS if that is right.
inline std::function<int()> afterMpi;

inline int rankOf(MPI_Comm comm) {
  int rank = -1;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

/// A duplicate of MPI_COMM_WORLD that has been attached. Collective.
class Attached {
public:
  explicit Attached(uint32_t timeoutMs = 20000) {
    occlConfig_t config = OCCL_CONFIG_INITIALIZER;
    config.timeoutMs = timeoutMs;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    EXPECT_EQ(MPIX_Comm_attach(comm, &config), MPI_SUCCESS) << MPIX_Error_text();
  }
  ~Attached() {
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
  Attached(const Attached &) = delete;
  Attached &operator=(const Attached &) = delete;
  operator MPI_Comm() const { return comm; }

private:
  MPI_Comm comm = MPI_COMM_NULL;
};

/// A request, freed with it.
class Request {
public:
  Request() = default;
  ~Request() {
    if (request)
      MPIX_Request_free(&request);
  }
  Request(const Request &) = delete;
  Request &operator=(const Request &) = delete;
  operator MPIX_Request() const { return request; }
  MPIX_Request *operator&() { return &request; }

private:
  MPIX_Request request = MPIX_REQUEST_NULL;
};

inline bool hasText(const std::string &part) {
  return std::string(MPIX_Error_text()).find(part) != std::string::npos;
}

/// The first of the results that is an error. A list is evaluated from left to right.
inline int firstOf(std::initializer_list<int> codes) {
  for (const int code : codes)
    if (code != MPI_SUCCESS)
      return code;
  return MPI_SUCCESS;
}

/// Asks until it has arrived.
inline int await(MPIX_Request request, int partition) {
  int flag = 0, code = MPI_SUCCESS;
  while (!flag && code == MPI_SUCCESS)
    code = MPIX_Parrived(request, partition, &flag);
  return code;
}

} // namespace occl::mpix::testing
