#include "test/explore/explorer/shadow.h"

namespace occl::explore {

void Shadow::begin() {
  ++schedule;
  recent.fill({});
  constexpr size_t kMostPages = 4096; // 130 MB
  if (pages.size() > kMostPages)
    pages.clear();
}

Shadow::Page &Shadow::pageOf(uintptr_t number) {
  auto found = pages.find(number);
  if (found == pages.end()) // made before it is there: what is allocated is forgotten
    found = pages.emplace(number, std::make_unique<Page>()).first;
  Page &page = *found->second;
  page.usedIn = schedule;
  recent[number % kRecent] = {number, &page};
  return page;
}

void Shadow::forget(uintptr_t begin, uintptr_t end) {
  forEachUsed(begin, end, [&](uintptr_t first, uintptr_t last) {
    auto &words = pages[first / kPageBytes]->words;
    const uintptr_t page = first / kPageBytes * kPageBytes;
    std::fill(words.begin() + (first - page) / kWordBytes,
              words.begin() + (last - page + kWordBytes - 1) / kWordBytes, Accesses{});
  });
}

} // namespace occl::explore
