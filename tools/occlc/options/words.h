// Options whose value is one of a few words.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <utility>
#include <vector>

namespace occl::tools {

/// Adds an option that sets `value` to what one of `words` stands for; help shows the word for what
/// `value` is now. Another word is an error that names all. Letters may be of either case.
template <typename Value>
CLI::Option *addWord(CLI::App &app, const char *name, Value &value,
                     const std::vector<std::pair<std::string, Value>> &words, const char *what) {
  // The words for messages and help, and which of them holds if the option is not given.
  std::string usual, all;
  for (const auto &[word, meaning] : words) {
    all += (all.empty() ? "" : ", ") + word;
    if (meaning == value)
      usual = word;
  }
  // Called when the option is met; the value is the caller's.
  auto set = [&value, words, name, all](const std::string &text) {
    for (const auto &[word, meaning] : words)
      // In any case of letters, as CLI11's own checks allow it.
      if (word == CLI::detail::to_lower(text)) {
        value = meaning;
        return;
      }
    throw CLI::ValidationError(name, "'" + text + "' is no value of this option; there are " + all);
  };
  return app.add_option_function<std::string>(name, set, what)->option_text("TEXT [" + usual + "]");
}

} // namespace occl::tools
