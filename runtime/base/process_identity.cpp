// Tells processes apart, also a parent from its forked child.
#include "runtime/base/process_identity.h"

#include "runtime/base/nonce.h"

#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace occl {
namespace {

using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free);

Word &makeWord() {
  // The kernel clears such a page in every child that gets a copy of it, by whatever call.
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && madvise(page, bytes, MADV_WIPEONFORK) == 0)
    return *new (page) Word(0);
  if (page != MAP_FAILED)
    munmap(page, bytes);
  // Linux before 4.14: fork() itself clears it.
  static Word word{0};
  pthread_atfork(nullptr, nullptr, [] { word.store(0, std::memory_order_relaxed); });
  return word;
}

/// Holds the process's cookie; 0 in a child that has not drawn its own yet.
Word &processWord() {
  static Word &word = makeWord();
  return word;
}

uint64_t processCookie() {
  uint64_t cookie = processWord().load(std::memory_order_relaxed);
  if (cookie != 0)
    return cookie;
  // Another thread may have stored its number first; then that one counts.
  uint64_t drawn = drawNonce();
  return processWord().compare_exchange_strong(cookie, drawn, std::memory_order_relaxed) ? drawn
                                                                                         : cookie;
}

} // namespace

ProcessIdentity ownProcess() { return {getpid(), processCookie()}; }

ProcessMark::ProcessMark() : word(&processWord()), cookie(processCookie()) {}

} // namespace occl
