// libibverbs, loaded where it is installed: neither a build nor a program depends on it.
#pragma once

#include "runtime/base/status.h"

#include <infiniband/verbs.h>

namespace occl::net {

/// Functions of libibverbs.so.1 by their names there, without "ibv_". Those for polling and posting
/// are inline in its header and need no entry.
struct Ibverbs {
#define OCCL_IBVERBS(X)                                                                            \
  X(fork_init)                                                                                     \
  X(get_device_list)                                                                               \
  X(free_device_list)                                                                              \
  X(get_device_name)                                                                               \
  X(open_device)                                                                                   \
  X(close_device)                                                                                  \
  X(query_port)                                                                                    \
  X(query_gid)                                                                                     \
  X(alloc_pd)                                                                                      \
  X(dealloc_pd)                                                                                    \
  X(reg_mr)                                                                                        \
  X(dereg_mr)                                                                                      \
  X(create_comp_channel)                                                                           \
  X(destroy_comp_channel)                                                                          \
  X(create_cq)                                                                                     \
  X(destroy_cq)                                                                                    \
  X(get_cq_event)                                                                                  \
  X(ack_cq_events)                                                                                 \
  X(create_qp)                                                                                     \
  X(modify_qp)                                                                                     \
  X(destroy_qp)                                                                                    \
  X(get_async_event)                                                                               \
  X(ack_async_event)                                                                               \
  X(wc_status_str)
#define OCCL_IBVERBS_FIELD(name) decltype(&::ibv_##name) name = nullptr;
  OCCL_IBVERBS(OCCL_IBVERBS_FIELD)
#undef OCCL_IBVERBS_FIELD

  /// Loads it once a process; any thread. SystemError: there is none, or an older one.
  static StatusOr<const Ibverbs *> load();
};

} // namespace occl::net
