#include "test/explore/explorer/shadow.h"

#include <algorithm>

namespace occl::explore {

Shadow::Page &Shadow::pageOf(uintptr_t number) {
  std::unique_ptr<Page> &page = pages[number];
  if (!page)
    page = std::make_unique<Page>();
  recent[number % kRecent] = {number, page.get()};
  return *page;
}

void Shadow::forget(uintptr_t begin, uintptr_t end) {
  for (uintptr_t at = begin; at < end;) {
    const uintptr_t number = at / kPageBytes, first = number * kPageBytes;
    const uintptr_t last = std::min(end, first + kPageBytes);
    if (auto found = pages.find(number); found != pages.end())
      std::fill(found->second->begin() + (at - first) / kWordBytes,
                found->second->begin() + (last - first + kWordBytes - 1) / kWordBytes, Accesses{});
    at = last;
  }
}

} // namespace occl::explore
