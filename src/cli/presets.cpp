// posenc presets: what tables there are, and where they come from.

#include "posenc/sinusoid/preset.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/text_table.h"

namespace posenc::cli {
namespace {

void print_json() {
  auto list = nlohmann::ordered_json::array();
  for (const auto& entry : presets()) {
    list.push_back({{"name", entry.name},
                    {"source", entry.source},
                    {"formula", entry.formula},
                    {"params", nlohmann::ordered_json::object()}});
  }
  fmt::print("{}\n", list.dump(2));
}

void print_table() {
  std::vector<std::vector<std::string>> rows = {{"name", "source", "formula"}};
  for (const auto& entry : presets()) rows.push_back({entry.name, entry.source, entry.formula});
  fmt::print("{}", text_table(rows));
}

}  // namespace

void add_presets(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  auto* sub =
      app.add_subcommand("presets", "Every preset: its name, where it comes from, its formula.");
  sub->add_flag("--json", *json, "an array of {name, source, formula, params}");
  sub->footer("Example:\n  posenc presets --json");
  sub->callback([json] { *json ? print_json() : print_table(); });
}

}  // namespace posenc::cli
