#include "tools/command_line/app.h"

#include "runtime/api/occl.h"
#include "support/text/wrapped.h"

#include <algorithm>
#include <memory>
#include <sstream>

namespace occl::tools {

namespace {

/// CLI11's, which breaks no lines.
class TerminalFormatter : public CLI::Formatter {
public:
  std::string make_description(const CLI::App *app) const override {
    return wrapped(Formatter::make_description(app), 0);
  }
  std::string make_usage(const CLI::App *app, std::string name) const override {
    return wrapped(Formatter::make_usage(app, std::move(name)), kFurtherIndent);
  }
  std::string make_footer(const CLI::App *app) const override {
    return wrapped(Formatter::make_footer(app), kFurtherIndent);
  }
  std::string make_subcommand(const CLI::App *sub) const override {
    return row(sub->get_display_name(true), sub->get_description());
  }
  std::string make_option(const CLI::Option *option, bool isPositional) const override {
    std::string name = make_option_name(option, isPositional) + make_option_opts(option);
    // A list of words, as "TEXT:{a,b}", has no blanks to break it at.
    if (name.size() + 2 > kTerminalColumns)
      name = CLI::detail::find_and_replace(name, ",", ", ");
    return row(wrapped("  " + name, kFurtherIndent).substr(2), make_option_desc(option));
  }

private:
  static constexpr size_t kFurtherIndent = 6;

  /// A name, and what it is in the second column.
  std::string row(const std::string &name, const std::string &description) const {
    std::ostringstream out;
    CLI::detail::format_help(out, name,
                             wrapped(description, 0, kTerminalColumns - get_column_width()),
                             get_column_width());
    return out.str();
  }
};

} // namespace

std::string version() {
  return std::to_string(OCCL_VERSION_MAJOR) + "." + std::to_string(OCCL_VERSION_MINOR);
}

void prepare(CLI::App &app) {
  app.formatter(std::make_shared<TerminalFormatter>());
  app.set_version_flag("--version", app.get_name() + " " + version(), "of OCCL");
}

} // namespace occl::tools
