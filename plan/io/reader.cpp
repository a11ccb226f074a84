#include "plan/io/reader.h"

#include "plan/io/cbor_decoder.h"
#include "plan/io/plan_parser.h"
#include "plan/io/read_code.h"
#include "plan/model/limits.h"
#include "support/text_check.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace occl::plan {

namespace {

using nlohmann::json;

/// Hands the events of nlohmann's JSON parser on.
class JsonEvents : public json::json_sax_t {
public:
  explicit JsonEvents(PlanParser &parser) : parser(parser) {}

  bool null() override { return parser.null(); }
  bool boolean(bool value) override { return parser.boolean(value); }
  bool number_integer(number_integer_t value) override { return parser.negativeInteger(value); }
  bool number_unsigned(number_unsigned_t value) override { return parser.unsignedInteger(value); }
  bool number_float(number_float_t, const string_t &) override { return parser.real(); }
  bool string(string_t &value) override { return parser.string(value); }
  bool binary(binary_t &) override { return parser.null(); }
  bool start_object(size_t) override { return parser.startObject(); }
  bool key(string_t &name) override { return parser.key(name); }
  bool end_object() override { return parser.endObject(); }
  bool start_array(size_t) override { return parser.startArray(); }
  bool end_array() override { return parser.endArray(); }
  bool parse_error(size_t position, const std::string &token, const json::exception &) override {
    syntaxError = "byte " + std::to_string(position) + ": this is not JSON, or is cut off, near '" +
                  support::printable(token) + "'";
    return false;
  }

  std::string syntaxError;

private:
  PlanParser &parser;
};

support::Status failure(const std::string &text, ReadCode code) {
  return support::Status::error(text + " [" + nameOf(code) + "]");
}

support::Status parseJson(std::string_view bytes, PlanParser &parser, const std::string &origin) {
  JsonEvents events(parser);
  // nlohmann's parser, fed through events, so that no document is built. It stops at an error of
  // its own, or when an event function returns false: then the schema's parser knows what is wrong.
  if (json::sax_parse(bytes.begin(), bytes.end(), &events))
    return {};
  if (events.syntaxError.empty())
    return failure(origin + parser.error(), parser.errorCode());
  return failure(origin + events.syntaxError, ReadCode::BadJson);
}

support::Status parseCbor(std::string_view bytes, PlanParser &parser, const std::string &origin) {
  CborDecoder decoder(bytes, parser);
  support::Status status = decoder.run();
  return status ? status : failure(origin + status.message(), decoder.errorCode());
}

/// `origin` begins every message.
support::Status parse(std::string_view bytes, PlanParser &parser, const std::string &origin) {
  // JSON plans are written by people as well, so that spaces before them are allowed; a CBOR map
  // has major type 5 in the upper three bits of its first byte.
  size_t start = bytes.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && bytes[start] == '{')
    return parseJson(bytes, parser, origin);
  if (!bytes.empty() && static_cast<unsigned char>(bytes[0]) >> 5 == 5)
    return parseCbor(bytes, parser, origin);
  return failure(origin + "this is no plan: neither a JSON object nor a CBOR map",
                 ReadCode::NoPlan);
}

} // namespace

support::Expected<Plan> readPlan(std::string_view bytes, const std::string &origin,
                                 const Limits &limits) {
  // The standard library and nlohmann report lack of memory by exceptions, and those end here.
  try {
    PlanParser parser(limits);
    support::Status status = parse(bytes, parser, origin + ": ");
    if (!status)
      return status;
    return std::move(parser).take();
  } catch (const std::exception &cause) {
    return failure(origin + ": cannot read the plan: " + cause.what(), ReadCode::Unreadable);
  }
}

support::Expected<Plan> readPlanFile(const std::string &path, const Limits &limits) {
  // A pipe or a device could block or never end, and has no size to check.
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem))
    return failure(path + ": there is no such file, or it is not a regular file",
                   ReadCode::Unreadable);
  uintmax_t size = std::filesystem::file_size(path, problem);
  if (problem || size > limits.fileBytes)
    return failure(path + ": the file has more than " + std::to_string(limits.fileBytes) +
                       " bytes or cannot be read",
                   ReadCode::Unreadable);
  std::ifstream file(path, std::ios::binary);
  // One allocation, bounded by the limit above; what the file says of itself is not believed before
  // it is parsed.
  try {
    std::string bytes(size, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    if (!file)
      return failure(path + ": the file cannot be read: check its permissions",
                     ReadCode::Unreadable);
    return readPlan(bytes, path, limits);
  } catch (const std::exception &) {
    return failure(path + ": there is not enough memory for its " + std::to_string(size) + " bytes",
                   ReadCode::Unreadable);
  }
}

} // namespace occl::plan
