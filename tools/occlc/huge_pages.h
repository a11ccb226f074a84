// The heap of a process that makes a gigabyte of small records, reads them a few times and ends.
#pragma once

namespace occl::tools {

/// Makes malloc ask the system for huge pages: with pages of 4 KiB, a quarter of the time of a
/// compilation for a thousand ranks goes to the TLB. The C library reads that setting only when a
/// program begins, so the program begins once more; where that cannot be, or GLIBC_TUNABLES says
/// something of it already, this returns. For main, before all else.
void useHugePages(char **arguments);

} // namespace occl::tools
