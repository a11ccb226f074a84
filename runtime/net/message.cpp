// Messages of networks as bytes, and the checks of those that have come.
#include "runtime/net/message.h"

#include "runtime/control/records/shrink_record.h"

#include <cstring>

namespace occl::net {

std::vector<std::byte> encode(const Message &message, std::string_view text) {
  // A message has a bounded size, so a longer text is cut.
  text = text.substr(0, kMaxMessage - sizeof message);
  std::vector<std::byte> bytes(sizeof message + text.size());
  std::memcpy(bytes.data(), &message, sizeof message);
  if (!text.empty())
    std::memcpy(bytes.data() + sizeof message, text.data(), text.size());
  return bytes;
}

std::optional<MessageWithText> decode(std::span<const std::byte> bytes) {
  MessageWithText read;
  if (bytes.size() < sizeof read.message)
    return std::nullopt;
  std::memcpy(&read.message, bytes.data(), sizeof read.message);
  const auto text = bytes.subspan(sizeof read.message);
  const uint32_t kind = read.message.kind;
  // Each kind has its own sizes and values; anything else ends the connection.
  const bool hasText = kind == Message::Failed || kind == Message::Waits ||
                       kind == Message::Divide || kind == Message::Shrink;
  if (kind < Message::Publish || kind > Message::Shrink || (!hasText && !text.empty()) ||
      (kind == Message::Waits && text.size() % sizeof(WaitRecord) != 0) ||
      (kind == Message::Divide && text.size() != sizeof(DivisionRecord)) ||
      (kind == Message::Shrink && text.size() != sizeof(transport::ShrinkRecord)) ||
      (kind == Message::Failed &&
       (read.message.code == 0 ||
        read.message.code > static_cast<uint32_t>(StatusCode::CallbackFailed))))
    return std::nullopt;
  read.text.assign(reinterpret_cast<const char *>(text.data()), text.size());
  return read;
}

} // namespace occl::net
