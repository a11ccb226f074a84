// The names that traces of a plan use, predicted by the compiler or recorded by the runtime, so
// that both can be laid side by side. Both have a process for each rank and a thread for each
// thread block.
#pragma once

namespace occl::plan::trace {

// Categories. The name of an instruction's event is its mnemonic; that of a wait begins with
// kWaitPrefix.
inline constexpr const char *kInstruction = "instruction";
inline constexpr const char *kWait = "wait";
inline constexpr const char *kWaitPrefix = "wait: ";

// Categories of moments: what becomes of an invocation, and partitions that a program marks.
inline constexpr const char *kRequest = "request";
inline constexpr const char *kMark = "mark";

// Messages: flows, whose category is kFlow too. Their ids are plan::nameOfMessage, and each end
// stands behind the event of the instruction that it belongs to.
inline constexpr const char *kFlow = "message";
inline constexpr const char *kFlowOfSignal = "signal";

// What is waited for.
inline constexpr const char *kMessage = "a message";
inline constexpr const char *kSignal = "a signal";
inline constexpr const char *kCredit = "room on a connection";
inline constexpr const char *kDependency = "another thread block";

} // namespace occl::plan::trace
