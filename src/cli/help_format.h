#pragma once

#include <CLI/Formatter.hpp>

#include <string>

namespace posenc::cli {

/// The widest line of a help text.
constexpr std::size_t kHelpWidth = 100;

/// CLI11's help, with descriptions broken between words so that no line is wider than kHelpWidth.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
  std::string make_subcommand(const CLI::App* sub) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;

 private:
  std::string entry(const std::string& left, const std::string& text) const;
};

/// The command line as JSON, from CLI11's own objects: what `posenc --describe` prints, and what
/// the man page and the completions are made from.
std::string description_of(CLI::App& app);

}  // namespace posenc::cli
