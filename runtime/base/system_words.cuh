// Device code: the words through which devices and the host tell each other something, as programs
// have them in their kernels, too.
#pragma once

#include "runtime/api/occl_device_words.cuh"

namespace occl {

using device::detail::acquireWord;
using device::detail::deviceClock;
using device::detail::fenceSequential;
using device::detail::fenceSystem;
using device::detail::loadWord;
using device::detail::releaseWord;
using device::detail::storeWord;

} // namespace occl
