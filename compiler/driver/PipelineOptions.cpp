#include "compiler/driver/PipelineOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace occl::driver {

static std::string listOf(llvm::ArrayRef<uint32_t> numbers) {
  return llvm::formatv("{0:$[,]}", llvm::make_range(numbers.begin(), numbers.end()));
}

std::string textOf(const PipelineOptions &options) {
  // Only what is unusual: the shortest text that gives the same options.
  const PipelineOptions usual;
  std::string text;
  auto add = [&](bool isUnusual, llvm::StringRef name, const std::string &value) {
    if (isUnusual)
      text += (text.empty() ? "" : " ") + name.str() + "=" + value;
  };
  auto word = [](bool value) { return value ? "true" : "false"; };
// A case for each kind of row; one kind more does not compile without.
#define OCCL_PASS_SWITCH(member, name, usually, help)                                              \
  add(options.member != usual.member, name, word(options.member));
#define OCCL_PLAN_SWITCH(member, name, usually, help)
#define OCCL_PASS_EITHER(member, name, effective, yes, no)                                         \
  add(options.member.has_value(), name, word(options.member.value_or(false)));
#define OCCL_PASS_NUMBER(member, name, usually, least, most, help)                                 \
  add(options.member != usual.member, name, std::to_string(options.member));
#define OCCL_PASS_WORD(member, name, usually, words, help)                                         \
  add(options.member != usual.member, name, options.member);
#define OCCL_PASS_LIST(member, name, help)                                                         \
  add(!options.member.empty(), name, listOf(options.member));
#include "compiler/driver/PipelineOptions.def"
  if (options.weights)
    add(true, "weights", listOf(options.weights->numbers()));
  return text;
}

std::string hashedText(const PipelineOptions &options) {
  // All values, usual or not, in the order of the rows: a changed default changes the hash, as it
  // changes the plan.
  std::string text;
  auto add = [&](const std::string &value) { text += (text.empty() ? "" : " ") + value; };
  auto word = [](bool value) { return value ? "true" : "false"; };
// Here what holds counts, not what was said.
#define OCCL_PASS_SWITCH(member, name, usual, help) add(word(options.member));
#define OCCL_PASS_EITHER(member, name, effective, yes, no) add(word(options.effective()));
#define OCCL_PASS_NUMBER(member, name, usual, least, most, help)                                   \
  add(std::to_string(options.member));
#define OCCL_PASS_WORD(member, name, usual, words, help) add(options.member);
#define OCCL_PASS_LIST(member, name, help) add(listOf(options.member));
#include "compiler/driver/PipelineOptions.def"
  // Weights depend on the topology, so the hash does.
  if (options.weights)
    for (uint32_t number : options.weights->numbers())
      add(std::to_string(number));
  return text;
}

} // namespace occl::driver
