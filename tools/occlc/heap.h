// The heap of a process that makes a gigabyte of small records, reads them a few times and ends.
#pragma once

namespace occl::tools {

/// Sets malloc up for that. What is freed is kept for the next pass: the system would clear it
/// again, page by page. And pages are huge: with those of 4 KiB, a quarter of the time of a
/// compilation for a thousand ranks goes to the TLB. The C library reads that setting only when a
/// program begins, so the program begins once more; where that cannot be, or GLIBC_TUNABLES says
/// something of it already, this returns. For main, before all else.
void prepareHeap(char **arguments);

} // namespace occl::tools
