// Memory that ranks share: mappings that unmap themselves, and descriptors that close themselves.
#pragma once

#include "runtime/base/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace occl::bootstrap {

/// Owns a file descriptor.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept
      : number(std::exchange(other.number, -1)), process(std::exchange(other.process, 0)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    std::swap(process, other.process);
    return *this;
  }
  ~Descriptor();

  int get() const { return number; }
  bool valid() const { return number >= 0; }

private:
  friend Descriptor openNotInherited(const std::function<int()> &open);

  int number = -1;
  uint32_t process = 0; // of openNotInherited(): in whose children, by forked.cpp, it is closed
};

enum class Access { ReadWrite, ReadOnly };

/// Owns a mapping.
class Mapping {
public:
  Mapping() = default;
  Mapping(Mapping &&other) noexcept : bytes(std::exchange(other.bytes, {})) {}
  Mapping &operator=(Mapping &&other) noexcept {
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Mapping();

  /// `size` bytes of zeros that only this process sees.
  static StatusOr<Mapping> anonymous(uint64_t size);
  /// The first `size` bytes of a file that is open for reading and writing; `what` names it in
  /// errors.
  static StatusOr<Mapping> ofFile(int descriptor, uint64_t size, const char *what,
                                  Access access = Access::ReadWrite);
  /// The same for a file that must be this user's, have exactly that size and be sealed so that it
  /// keeps it (createSealedFile): Mismatch if it is not. PeerFailed if there is no such file any
  /// more; SystemError for want of anything here.
  static StatusOr<Mapping> ofPath(const std::string &path, uint64_t size, const std::string &what,
                                  Access access = Access::ReadWrite);

  std::span<std::byte> get() const { return bytes; }

private:
  std::span<std::byte> bytes;
};

/// Whole pages of a mapping that is ReadOnly become writable. SystemError.
Status allowStores(std::span<std::byte> pages);

/// Gives an empty file of shared memory its size and, if `reserve`, all its memory: without that,
/// touching it where there is none to be had is the end of the process (SIGBUS). The number of the
/// error, or 0.
int growFile(int descriptor, uint64_t bytes, bool reserve);

/// A file of zeros without a name that lives as long as someone has it open or mapped. Sealed:
/// nobody can shrink it under another's feet.
StatusOr<Descriptor> createSealedFile(const char *label, uint64_t bytes);

/// Where another process opens descriptor `number` of the process of `thread`, while that thread
/// lives: those of a process whose main thread has ended are not found by the process's number.
std::string descriptorPath(int thread, int number);

/// `bytes` rounded up to whole pages; InvalidArgument if it is 0 or too large to map.
StatusOr<uint64_t> wholePages(uint64_t bytes);

} // namespace occl::bootstrap
