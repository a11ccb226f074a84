#include "plan/io/cbor_decoder.h"

namespace occl::plan {

namespace {

enum MajorType : unsigned { Unsigned, Negative, Bytes, Text, Array, Map, Tag, Simple };

} // namespace

support::Status CborDecoder::run() {
  do {
    // An item closes all containers that it completes, so at the end of the loop's body `levels`
    // holds only those that still miss something. The plan itself is the last one that ends.
    itemStart = position;
    if (!item() || !closeFinished()) {
      const std::string &cause = message.empty() ? parser.error() : message;
      return support::Status::error("byte " + std::to_string(itemStart) + ": " + cause);
    }
  } while (!levels.empty());
  if (position == bytes.size())
    return {};
  message = "something follows the plan";
  return support::Status::error("byte " + std::to_string(position) + ": " + message);
}

bool CborDecoder::item() {
  if (position == bytes.size())
    return fail("the plan is cut off");
  auto first = static_cast<unsigned char>(bytes[position++]);
  // The initial byte (RFC 8949, 3.): three bits of major type, five of argument or of its width.
  unsigned major = first >> 5, info = first & 31;
  // A map is counted as twice its size, key and value in turns: an even number left means that the
  // next one is a key.
  bool isKey = !levels.empty() && levels.back().isMap && levels.back().remaining % 2 == 0;
  if (!levels.empty())
    --levels.back().remaining;
  if (isKey && major != Text)
    return fail("the key is not a text string");
  // Floats, truth values and null have no argument in the sense of the others.
  if (major == Simple)
    return simple(info);
  uint64_t value = 0;
  if (!argument(info, value))
    return false;
  switch (major) {
  case Unsigned:
    return parser.unsignedInteger(value);
  case Negative:
    // The argument is -1 - n, which does not fit into 64 bits with a sign from 2^63 on. No field
    // takes a number as large, so that it is reported as any number that is not an integer.
    if (value > INT64_MAX)
      return parser.real();
    return parser.negativeInteger(static_cast<int64_t>(~value));
  case Text: {
    if (value > bytes.size() - position)
      return fail("the plan is cut off in a string of " + std::to_string(value) + " bytes");
    std::string_view text = bytes.substr(position, value);
    position += value;
    return isKey ? parser.key(text) : parser.string(text);
  }
  case Array:
    return container(value, false);
  case Map:
    return container(value, true);
  default:
    return fail(major == Tag ? "plans have no tags" : "plans have no byte strings");
  }
}

bool CborDecoder::argument(unsigned info, uint64_t &value) {
  // Arguments below 24 stand in the initial byte; 24 to 27 say that 1, 2, 4 or 8 bytes follow, the
  // highest first. 31 would begin an item of indefinite length.
  if (info < 24) {
    value = info;
    return true;
  }
  if (info > 27)
    return fail(info == 31 ? "plans have no items of indefinite length" : "this is not CBOR");
  size_t width = size_t{1} << (info - 24);
  if (width > bytes.size() - position)
    return fail("the plan is cut off");
  for (size_t i = 0; i < width; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[position++]);
  return true;
}

bool CborDecoder::simple(unsigned info) {
  switch (info) {
  case 20:
  case 21:
    return parser.boolean(info == 21);
  case 22:
    return parser.null();
  // Floats of 16, 32 and 64 bits: their bytes are never read, since the parser refuses every number
  // that is not an integer.
  case 25:
  case 26:
  case 27:
    return parser.real();
  default:
    return fail("this is not CBOR that plans use");
  }
}

bool CborDecoder::container(uint64_t size, bool isMap) {
  // Every item has at least a byte: a size beyond that is refused before anybody believes it.
  if (size > (bytes.size() - position) / (isMap ? 2 : 1))
    return fail("the plan is cut off, or declares " + std::to_string(size) +
                (isMap ? " members" : " elements") + " that are not there");
  levels.push_back({isMap ? 2 * size : size, isMap});
  return isMap ? parser.startObject() : parser.startArray();
}

bool CborDecoder::closeFinished() {
  while (!levels.empty() && levels.back().remaining == 0) {
    if (!(levels.back().isMap ? parser.endObject() : parser.endArray()))
      return false;
    levels.pop_back();
  }
  return true;
}

bool CborDecoder::fail(const std::string &what) {
  message = what;
  return false;
}

} // namespace occl::plan
