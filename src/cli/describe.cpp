#include <CLI/App.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/help_format.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

Json names_of(const CLI::Option& option) {
  auto names = Json::array();
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

Json names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const auto* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // CLI11 orders them by address
  return names;
}

Json json_of(CLI::Option& option, const std::string& group) {
  Json result;
  if (option.get_positional()) {
    result["name"] = option.get_name(true);
  } else {
    result["names"] = names_of(option);
  }
  const std::string type = option.get_type_size() == 0 ? "" : option.get_type_name();
  result["value"] = type.substr(0, type.find(':'));  // "" for a flag
  const ValueRule rule = rule_of(option);
  result["kind"] = rule.kind;
  result["choices"] = rule.words;
  result["choices_from"] = rule.source.empty() ? Json() : Json(rule.source);
  result["default"] = option.get_default_str().empty() ? Json() : Json(option.get_default_str());
  result["required"] = option.get_required();
  result["repeatable"] = option.get_expected_max() > 1;
  result["group"] = group.empty() ? Json() : Json(group);
  result["needs"] = names_of(option.get_needs());
  result["excludes"] = names_of(option.get_excludes());
  result["description"] = option.get_description();
  return result;
}

// The options of a command, with those of its groups.
void add_options(CLI::App& app, const std::string& group, Json& options, Json& positionals,
                 Json& groups) {
  for (auto* option : app.get_options([](const CLI::Option*) { return true; })) {
    const bool is_copy = !group.empty() && option == app.get_help_ptr();  // each group has its own
    if (is_copy || option->get_group().empty()) continue;                 // the latter are hidden
    (option->get_positional() ? positionals : options).push_back(json_of(*option, group));
  }
  for (auto* part : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!part->get_name().empty()) continue;
    const std::string name = part->get_group();
    groups.push_back({{"name", name},
                      {"least", part->get_require_option_min()},
                      {"most", part->get_require_option_max()}});
    add_options(*part, name, options, positionals, groups);
  }
}

Json json_of(CLI::App& app) {
  auto options = Json::array(), positionals = Json::array(), groups = Json::array();
  add_options(app, "", options, positionals, groups);
  const std::string footer = app.get_footer(), mark = "Example:\n";
  const auto example = footer.find(mark);
  const bool has_example = example != std::string::npos;
  auto examples = Json::array();
  if (has_example) {
    std::string text = footer.substr(example + mark.size());
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      examples.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return {{"name", app.get_name()},     {"description", app.get_description()},
          {"positionals", positionals}, {"options", options},
          {"groups", groups},           {"notes", footer.substr(0, example)},
          {"examples", examples}};
}

}  // namespace

std::string description_of(CLI::App& app) {
  Json all = json_of(app);
  auto subcommands = Json::array();
  for (auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_name().empty()) subcommands.push_back(json_of(*sub));
  }
  all["subcommands"] = std::move(subcommands);
  return all.dump(2);
}

}  // namespace posenc::cli
