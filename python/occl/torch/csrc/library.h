// liboccl.so.0, opened at run time: through its C interface, which is all that is used of it.
#pragma once

#include <string>

#include "occl.h"
#include "occl_insight.h"
#include "occl_rendezvous.h"
#include "occl_transfer.h"

namespace occl_torch {

#define OCCL_TORCH_FUNCTIONS(F)                                                                    \
  F(occlCommInitRank)                                                                              \
  F(occlCommDestroy)                                                                               \
  F(occlCommAbort)                                                                                 \
  F(occlCommShrink)                                                                                \
  F(occlCommRank)                                                                                  \
  F(occlCommSize)                                                                                  \
  F(occlStart)                                                                                     \
  F(occlCall)                                                                                      \
  F(occlStreamWait)                                                                                \
  F(occlTest)                                                                                      \
  F(occlSend)                                                                                      \
  F(occlRecv)                                                                                      \
  F(occlGroupStart)                                                                                \
  F(occlGroupEnd)                                                                                  \
  F(occlGroupEndAsync)                                                                             \
  F(occlHostId)                                                                                    \
  F(occlRendezvousOpen)                                                                            \
  F(occlRendezvousClose)                                                                           \
  F(occlGetErrorString)                                                                            \
  F(occlGetLastError)                                                                              \
  F(occlCommGetLastError)                                                                          \
  F(occlCommReport)

struct Library {
#define OCCL_TORCH_DECLARE(name) decltype(&::name) name = nullptr;
  OCCL_TORCH_FUNCTIONS(OCCL_TORCH_DECLARE)
#undef OCCL_TORCH_DECLARE
};

/// Opens the library at `path`, once a process: a further call must name the same file.
/// Throws std::runtime_error that says what is wrong.
void loadLibrary(const std::string &path);
/// Throws std::runtime_error if loadLibrary was not called.
const Library &occl();

} // namespace occl_torch
