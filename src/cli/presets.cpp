// posenc presets: lists the presets of tables and of rotary embeddings, and their origins.

#include "posenc/sinusoid/preset.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/text_table.h"
#include "posenc/models/rotary_config.h"
#include "posenc/sinusoid/rotary_preset.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

// The default as a number if it is one; null if the parameter is required.
Json default_of(const PresetParam& param) {
  if (param.fallback.empty()) return nullptr;
  const Json number = Json::parse(param.fallback, nullptr, false);
  return number.is_number() ? number : Json(param.fallback);
}

Json json_of(const Preset& entry) {
  auto aliases = Json::array(), params = Json::array();
  for (const Preset& other : presets()) {
    if (other.recipe == entry.recipe && other.name != entry.name) aliases.push_back(other.name);
  }
  for (const PresetParam& param : entry.params) {
    params.push_back(
        {{"name", param.name}, {"default", default_of(param)}, {"meaning", param.meaning}});
  }
  return {{"name", entry.name},     {"recipe", entry.recipe},   {"aliases", aliases},
          {"source", entry.source}, {"storage", entry.storage}, {"params", params},
          {"bound", entry.bound},   {"also", entry.also}};
}

void print_json() {
  auto list = Json::array();
  for (const auto& entry : presets()) list.push_back(json_of(entry));
  fmt::print("{}\n", list.dump(2));
}

// Presets under the same heading, the recipe's name, have the same bits.
void print_table() {
  const auto& all = presets();
  for (std::size_t i = 0; i < all.size();) {
    fmt::print("{}{}\n", i > 0 ? "\n" : "", all[i].recipe);
    for (const auto& param : all[i].params) {
      const bool needed = param.fallback.empty();
      fmt::print("  --param {}={}  {}\n", param.name, needed ? "..." : param.fallback,
                 param.meaning + (needed ? ", required" : ""));
    }
    if (!all[i].bound.empty()) fmt::print("  equal within {}\n", all[i].bound);
    std::vector<std::vector<std::string>> rows;
    const std::string recipe = all[i].recipe;
    for (; i < all.size() && all[i].recipe == recipe; ++i) {
      rows.push_back({all[i].name, all[i].source, all[i].storage});
      for (const std::string& system : all[i].also) rows.push_back({"", system, ""});
    }
    fmt::print("{}", text_table(rows, 2));
  }
}

std::vector<std::string> model_types_of(const std::string& preset) {
  std::vector<std::string> names;
  for (const RotaryModel& model : rotary_models()) {
    if (model.preset == preset) names.push_back(model.model_type);
  }
  return names;
}

void print_rotary_json() {
  auto list = Json::array();
  for (const RotaryPreset& preset : rotary_presets()) {
    list.push_back({{"name", preset.name},
                    {"source", preset.source},
                    {"summary", preset.summary},
                    {"model_types", model_types_of(preset.name)}});
  }
  fmt::print("{}\n", list.dump(2));
}

void print_rotary_table() {
  std::vector<std::vector<std::string>> rows;
  for (const RotaryPreset& preset : rotary_presets()) {
    rows.push_back({preset.name, preset.source, preset.summary});
  }
  fmt::print("rotary\n{}", text_table(rows, 2));
  for (const RotaryPreset& preset : rotary_presets()) {
    const auto names = model_types_of(preset.name);
    if (!names.empty()) fmt::print("\nrotary {}: {}\n", preset.name, listed(names));
  }
}

struct PresetsArguments {
  bool json = false, rotary = false;
};

void print(const PresetsArguments& arguments) {
  if (arguments.json) return arguments.rotary ? print_rotary_json() : print_json();
  if (!arguments.rotary) print_table();
  if (!arguments.rotary) fmt::print("\n");
  print_rotary_table();
}

}  // namespace

void add_presets(CLI::App& app) {
  auto arguments = std::make_shared<PresetsArguments>();
  auto* sub =
      app.add_subcommand("presets",
                         "List the presets: their origin, how the original system stores the "
                         "table, and their parameters. Presets under one heading have the same "
                         "bits. Then the rotary embeddings, with the model types that use them.");
  sub->add_flag("--json", arguments->json,
                "print an array of {name, recipe, aliases, source, storage, params, bound, also}; "
                "with --rotary of {name, source, summary, model_types}");
  sub->add_flag("--rotary", arguments->rotary, "list the rotary embeddings only");
  sub->footer("Example:\n  posenc presets --json");
  sub->callback([arguments] { print(*arguments); });
}

}  // namespace posenc::cli
