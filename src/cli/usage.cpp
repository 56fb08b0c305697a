#include "cli/usage.h"

#include <algorithm>
#include <vector>

#include "cli/error.h"

namespace posenc::cli {
namespace {

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument.front() == '-';
}

// The options of a subcommand, including those of its groups.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const auto* group : app.get_subcommands({})) {
    if (!group->get_name().empty()) continue;
    const auto more = option_names(*group);
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

// Reports an argument that CLI11 could not place: preferably an unknown option rather than the
// words after it.
std::string unknown_argument(const CLI::App& app, const std::vector<std::string>& rest) {
  const auto found = std::find_if(rest.begin(), rest.end(), is_option);
  if (found == rest.end()) return "unexpected argument " + rest.front();
  const std::string name = found->substr(0, found->find('='));
  const auto known = option_names(app);
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    return fmt::format("{} must come after {} and before any --", name, app.get_name());
  }
  return "there is no option " + name + did_you_mean(name, known);
}

// Rewrites "--dim: 1 required INT missing" and similar messages, in which only the option's name is
// of use to users.
std::string count_message(const std::string& text) {
  const std::string option = text.substr(0, text.find_first_of(": "));
  return text.find("At Most") != std::string::npos    ? option + " may be given only once"
         : text.find("override") != std::string::npos ? option + " takes no value"
                                                      : option + " must be followed by its value";
}

}  // namespace

std::string unknown_subcommand(const CLI::App& app, const std::string& name) {
  if (name == "verify" || name == "run") {  // which were removed
    return "there is no subcommand " + name +
           "; docs/parity.md says how to compare a module with Python's";
  }
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return "there is no subcommand " + name + suggestion(name, names);
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const auto rest = app.remaining(true);
  if (chosen.empty() && !rest.empty() && !is_option(rest.front())) {
    return unknown_subcommand(app, rest.front());
  }
  if (!rest.empty()) return unknown_argument(chosen.empty() ? app : *chosen.front(), rest);

  const std::string text = error.what(), kind = error.get_name();
  if (kind == "ArgumentMismatch") return count_message(text);
  if (kind == "ConversionError") {  // of a flag: other values have been validated
    return text.substr(text.find("--"), text.find(" = ") - text.find("--")) + " takes no value";
  }
  if (kind == "ExcludesError") {
    const auto at = text.find(" excludes ");
    std::string one = text.substr(0, at), other = text.substr(at + 10);
    if (other < one) one.swap(other);  // CLI11 orders them by address
    return one + " and " + other + " exclude each other";
  }
  if (kind == "ValidationError" || kind == "RequiredError") {
    const auto rule = text.find(": must ");  // from one of our validators
    return rule == std::string::npos ? text : text.substr(0, rule) + text.substr(rule + 1);
  }
  return text;
}

}  // namespace posenc::cli
