#include "plan/model/names.h"

#include <array>

namespace occl::plan {

namespace {

constexpr std::array<std::string_view, 4> kOperandKinds = {"input", "output", "scratch",
                                                           "connection"};
constexpr std::array<std::string_view, 3> kProtocols = {"Simple", "LL", "LL128"};

constexpr std::array<std::string_view, kNumOpcodes> kOpcodes = {
#define OCCL_OPCODE(name, mnemonic) mnemonic,
#include "plan/model/opcode.def"
#undef OCCL_OPCODE
};

template <typename Enum, size_t N>
std::optional<Enum> find(const std::array<std::string_view, N> &names, std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name)
      return static_cast<Enum>(i);
  return std::nullopt;
}

template <typename Enum, size_t N>
std::string_view name(const std::array<std::string_view, N> &names, Enum value) {
  auto i = static_cast<size_t>(value);
  return i < N ? names[i] : "invalid";
}

} // namespace

std::string_view nameOf(OperandKind kind) { return name(kOperandKinds, kind); }
std::string_view nameOf(Protocol protocol) { return name(kProtocols, protocol); }

std::optional<OperandKind> operandKindOf(std::string_view name) {
  return find<OperandKind>(kOperandKinds, name);
}
std::optional<Protocol> protocolOf(std::string_view name) {
  return find<Protocol>(kProtocols, name);
}
std::optional<Opcode> opcodeOf(std::string_view name) { return find<Opcode>(kOpcodes, name); }

} // namespace occl::plan
