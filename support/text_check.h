// Checks on text from untrusted files.
#pragma once

#include <string>
#include <string_view>

namespace occl::support {

/// Whether `text` is UTF-8 without control characters.
bool isPlainText(std::string_view text);

/// The text with '?' for each byte that keeps it from being plain; as long as before.
std::string madePlain(std::string_view text);

/// The first bytes of any text, with what is not printable ASCII replaced: fit for an error
/// message.
std::string printable(std::string_view text);

} // namespace occl::support
