// HMAC (RFC 2104) with SHA-256. OpenSSL's own HMAC brings all that the library knows into programs
// that are linked with its archive, as libnccl.so.2, which every process of a program loads.
#define OPENSSL_SUPPRESS_DEPRECATED // of the functions of one hash, which are as good as ever
#include "runtime/net/rendezvous/handshake.h"

#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace occl::net {
namespace {

constexpr size_t kBlockBytes = SHA256_CBLOCK;
using Block = std::array<std::byte, kBlockBytes>;

Hash sha256(std::span<const std::byte> first, std::span<const std::byte> second) {
  Hash hash{};
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, first.data(), first.size());
  SHA256_Update(&context, second.data(), second.size());
  SHA256_Final(reinterpret_cast<unsigned char *>(hash.data()), &context);
  OPENSSL_cleanse(&context, sizeof context);
  return hash;
}

} // namespace

Hash authenticate(std::span<const std::byte> key, std::span<const std::byte> text) {
  Block inner{}, outer{};
  // A key that is longer than a block is replaced by its hash.
  if (key.size() > kBlockBytes)
    std::ranges::copy(sha256(key, {}), inner.begin());
  else
    std::ranges::copy(key, inner.begin());
  outer = inner;
  // The two constants are those of the standard.
  for (size_t i = 0; i < kBlockBytes; ++i) {
    inner[i] ^= std::byte{0x36};
    outer[i] ^= std::byte{0x5c};
  }
  const Hash hash = sha256(outer, sha256(inner, text));
  // The key does not stay on the stack.
  OPENSSL_cleanse(inner.data(), inner.size());
  OPENSSL_cleanse(outer.data(), outer.size());
  return hash;
}

std::string hexadecimal(const Hash &hash) {
  std::string text;
  for (const std::byte byte : hash)
    for (const int digit : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

} // namespace occl::net
