// The spelling of the plan's enumerators in plan files and reports. Opcodes: mnemonic() in
// plan/model/opcode.h.
#pragma once

#include "plan/model/plan.h"

#include <optional>
#include <string_view>

namespace occl::plan {

/// "input", "output", "scratch" or "connection".
std::string_view nameOf(OperandKind kind);

/// "Simple", "LL" or "LL128".
std::string_view nameOf(Protocol protocol);

/// What marks an ordered connection, and a counter, in plan files.
inline constexpr std::string_view kOrdered = "ordered";
inline constexpr std::string_view kCounter = "counter";

// The enumerator of a spelling; nothing if there is none.
std::optional<OperandKind> operandKindOf(std::string_view name);
std::optional<Protocol> protocolOf(std::string_view name);
std::optional<Opcode> opcodeOf(std::string_view name);

/// True for signal and wait: they move no chunks.
constexpr bool isControl(Opcode opcode) { return opcode >= Opcode::Signal; }

} // namespace occl::plan
