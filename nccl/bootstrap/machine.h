// Which machine a rank is on, and what others call it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace occl::nccl {

using MachineId = std::array<uint8_t, 16>;

/// Equal for processes that OCCL can join: of one user on one running kernel, with the same
/// /dev/shm and the same PID and network namespaces. With NCCL_HOSTID, of one value of it as well.
MachineId machineId();

/// For messages.
std::string hostName();

/// FNV-1a from two starting points: every process computes the same.
MachineId hashOf(const std::string &text);

} // namespace occl::nccl
