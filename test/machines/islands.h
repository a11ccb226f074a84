// For tests of ranks of several islands: processes of this machine with host ids of their own.
#pragma once

#include "runtime/api/occl.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace occl::communicator::testing {

/// A port of this machine on which nobody listens, to the best of what one can know.
uint16_t freePort();

/// "127.0.0.1:PORT/SECRET", a new one.
std::string newAddress();

/// Joins as rank `rank` of numRanks on the host with this number; "" or what is wrong.
std::string joinOn(uint32_t host, occlComm_t &comm, uint32_t numRanks, uint32_t rank,
                   const std::string &address, const occlConfig_t *config = nullptr);

/// In a process for each rank, on hosts[rank]: joins, runs body(comm, rank), which returns "" or
/// what is wrong, and leaves. Expects that nothing is wrong.
void onIslands(const std::vector<uint32_t> &hosts,
               const std::function<std::string(occlComm_t, uint32_t)> &body,
               const occlConfig_t &config = OCCL_CONFIG_INITIALIZER);

/// Likewise runs round(comm, rank, i) for each i below numRounds. Rank `stopped` stops before the
/// middle one (SIGSTOP) and goes on after `pause`. Expects that nothing is wrong.
void withARankThatStops(
    const std::vector<uint32_t> &hosts, uint32_t stopped, std::chrono::seconds pause,
    uint32_t numRounds,
    const std::function<std::string(occlComm_t, uint32_t rank, uint32_t i)> &round);

/// Runs all kinds of collectives that have plans of the library, of so many elements a part, and
/// compares with what the numbers of all ranks make; "" or what is wrong.
std::string runCollectives(occlComm_t comm, uint64_t count);

} // namespace occl::communicator::testing
