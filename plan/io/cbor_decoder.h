// Decodes the part of CBOR (RFC 8949) that plans use: maps with text keys, arrays, text strings,
// integers, true, false, null, all of definite length. Not nlohmann's decoder, because that one
// recurses once a byte on nested strings of indefinite length: a hostile file could overflow the
// stack.
#pragma once

#include "plan/io/plan_parser.h"
#include "support/status.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace occl::plan {

class CborDecoder {
public:
  /// `bytes` must outlive the decoder.
  CborDecoder(std::string_view bytes, PlanParser &parser) : bytes(bytes), parser(parser) {}

  /// Feeds the one item that `bytes` must consist of to the parser. An error names the byte.
  support::Status run();
  /// The kind of the error that run() returned.
  ReadCode errorCode() const { return message.empty() ? parser.errorCode() : ReadCode::BadCbor; }

private:
  struct Level {
    uint64_t remaining; // items; keys and values count singly
    bool isMap;
  };

  bool item();
  bool argument(unsigned info, uint64_t &value);
  bool simple(unsigned info);
  bool container(uint64_t size, bool isMap);
  bool closeFinished();
  bool fail(const std::string &what);

  std::string_view bytes;
  PlanParser &parser;
  size_t position = 0;
  size_t itemStart = 0;
  std::vector<Level> levels;
  std::string message;
};

} // namespace occl::plan
