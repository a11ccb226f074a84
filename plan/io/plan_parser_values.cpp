// The values of a plan file: numbers, truth values, texts, names. See plan_parser.h.
#include "plan/io/plan_parser.h"
#include "plan/model/names.h"
#include "support/suggestion.h"
#include "support/text_check.h"

#include <limits>

namespace occl::plan {

template <typename T> bool PlanParser::setNumber(const Scalar &value, T &to) {
  using Limits = std::numeric_limits<T>;
  // Both kinds of integers are compared in a type in which they are exact: a conversion before the
  // comparison would let 2^32 pass as 0.
  if (value.type == Scalar::Type::Unsigned && value.bits <= static_cast<uint64_t>(Limits::max())) {
    to = static_cast<T>(value.bits);
    return true;
  }
  auto negative = static_cast<int64_t>(value.bits);
  if (value.type == Scalar::Type::Negative && Limits::is_signed &&
      negative >= static_cast<int64_t>(Limits::min())) {
    to = static_cast<T>(negative);
    return true;
  }
  return wrongType(value, "an integer from " + std::to_string(Limits::min()) + " to " +
                              std::to_string(Limits::max()));
}

bool PlanParser::set(const Scalar &value, bool &to) {
  to = value.bits != 0;
  return value.type == Scalar::Type::Bool || wrongType(value, "true or false");
}

bool PlanParser::set(const Scalar &value, std::string &to) {
  if (value.type != Scalar::Type::String)
    return wrongType(value, "a string");
  // Before its bytes are copied or looked at: the text is the file's, and as long as that.
  if (value.text.size() > most.nameLength)
    return fail("the text has " + std::to_string(value.text.size()) + " bytes; at most " +
                std::to_string(most.nameLength) + " are allowed");
  if (!support::isPlainText(value.text))
    return fail("the text holds control characters or is not UTF-8");
  to = value.text;
  return true;
}

bool PlanParser::wrongType(const Scalar &value, const std::string &expected) {
  // What stands there instead, as far as it may be shown: a text is cut short and made printable.
  std::string got;
  switch (value.type) {
  case Scalar::Type::Null:
    got = "null";
    break;
  case Scalar::Type::Bool:
    got = value.bits ? "true" : "false";
    break;
  case Scalar::Type::Unsigned:
    got = std::to_string(value.bits);
    break;
  case Scalar::Type::Negative:
    got = std::to_string(static_cast<int64_t>(value.bits));
    break;
  case Scalar::Type::Real:
    got = "a number that is not a 64-bit integer";
    break;
  case Scalar::Type::String:
    got = "'" + support::printable(value.text) + "'";
    break;
  }
  return fail("expected " + expected + ", got " + got);
}

template <typename Enum>
bool PlanParser::setEnum(const Scalar &value, Enum &to, std::optional<Enum> named,
                         const char *expected) {
  if (value.type != Scalar::Type::String || !named)
    return wrongType(value, expected);
  to = *named;
  return true;
}

bool PlanParser::set(const Scalar &value, Protocol &to) {
  return setEnum(value, to, protocolOf(value.text), "\"Simple\", \"LL\" or \"LL128\"");
}
bool PlanParser::set(const Scalar &value, Opcode &to) {
  if (setEnum(value, to, opcodeOf(value.text), "the name of an instruction"))
    return true;
  // A misspelt name of an instruction gets a suggestion, as a mistake of people; the other
  // enumerations have two or three values.
  std::vector<std::string_view> names;
  for (unsigned opcode = 0; opcode < kNumOpcodes; ++opcode)
    names.push_back(mnemonic(static_cast<Opcode>(opcode)));
  if (value.type == Scalar::Type::String)
    message += support::didYouMean(support::suggest(value.text, names));
  return false;
}
bool PlanParser::set(const Scalar &value, OperandKind &to) {
  return setEnum(value, to, operandKindOf(value.text),
                 "\"input\", \"output\", \"scratch\" or \"connection\"");
}

bool PlanParser::setKind(const Scalar &value) {
  isOrdered = value.type == Scalar::Type::String && value.text == kOrdered;
  isCounter = value.type == Scalar::Type::String && value.text == kCounter;
  return isOrdered || isCounter || wrongType(value, "\"ordered\" or \"counter\"");
}

bool PlanParser::set(const Scalar &value, uint32_t &to) { return setNumber(value, to); }
bool PlanParser::set(const Scalar &value, uint64_t &to) { return setNumber(value, to); }
bool PlanParser::set(const Scalar &value, int32_t &to) { return setNumber(value, to); }
bool PlanParser::set(const Scalar &value, int64_t &to) { return setNumber(value, to); }

} // namespace occl::plan
