// posenc table: writes a preset's table to a file.

#include "posenc/positions/sinusoid/table.h"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include <fmt/ranges.h>
#include <CLI/Error.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/params.h"
#include "cli/weights.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/weights/error.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "weights/common/file.h"
#include "weights/common/json.h"
#include "weights/convert.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

// Number of cells of the recipe's grid. Throws CommandError for more than 2^31.
int64_t cells_of(const SinusoidOptions& options) {
  int64_t cells = 1;
  for (const int64_t extent : options.grid()) {
    if (extent > kMostRows / cells) fail("a grid must have at most {} cells", kMostRows);
    cells *= extent;
  }
  return cells;
}

// The table of `options` for the nominal length `length`. For a grid it must be the number of
// cells, or nullopt. Throws CommandError for an invalid table.
at::Tensor table_of(const SinusoidOptions& options, std::optional<int64_t> length) {
  if (!length && options.grid().empty()) fail("length must be given");
  return sinusoid_table(options, length ? *length : cells_of(options));
}

int64_t extent_of(const Json& value, const std::string& key, int64_t most) {
  const bool fits = value.is_number_integer() && value >= 1 && value <= most;
  if (!fits) fail("{} must be an integer from 1 to {}. Got {}", key, most, value.dump());
  return value.get<int64_t>();
}

PresetValue value_of(const Json& value, const std::string& key) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const bool fits =  // nlohmann would compare uint64_t as int64_t
      !value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX;
  if (value.is_number_integer() && fits) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  fail("params: {} must be a number or a string. Got {}", key, value.dump());
}

Precision precision_of(const Json& value) {
  if (value == "reference") return Precision::Reference;
  if (value == "exact") return Precision::Exact;
  fail("precision must be reference or exact. Got {}", value.dump());
}

at::Tensor table_of_case(const Json& entry) {
  static const std::set<std::string> known = {"name",   "preset", "dim",
                                              "length", "params", "precision"};
  for (const auto& [key, value] : entry.items()) {
    if (!known.count(key)) fail("a case has no field {}", key);
  }
  if (!entry.contains("preset") || !entry["preset"].is_string()) fail("preset must be a name");
  if (!entry.contains("dim")) fail("dim must be an integer");
  PresetParams params;
  if (entry.contains("params")) {
    if (!entry["params"].is_object()) fail("params must be an object");
    for (const auto& [key, value] : entry["params"].items()) {
      params.emplace(key, value_of(value, key));
    }
  }
  auto options = preset(entry["preset"].get<std::string>(),
                        extent_of(entry["dim"], "dim", kMostChannels), params);
  if (entry.contains("precision")) options.precision(precision_of(entry["precision"]));
  std::optional<int64_t> length;
  if (entry.contains("length")) length = extent_of(entry["length"], "length", kMostRows);
  return table_of(options, length);
}

Json read_cases(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) fail("{}: must be a file of cases", path);
  std::ifstream stream(path, std::ios::binary);
  if (!stream) fail("{}: cannot be read", path);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto list = io::in_file(path, [&] { return io::json_tree<Json>(text, "its cases"); });
  if (!list.is_array()) {
    fail("{}: must contain a JSON array of cases. Got {}", path, list.type_name());
  }
  std::set<std::string> names;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) {
      fail("{}: each case must be an object with a name. Got {}", path, entry.dump());
    }
    if (!names.insert(entry["name"].get<std::string>()).second) {
      fail("{}: the case {} occurs twice", path, entry["name"].dump());
    }
  }
  return list;
}

// Makes the tables for the cases listed in the JSON file `path` and writes them to `output` under
// their names. A rejected case leaves its message in the metadata instead.
void make_cases(const std::string& path, const std::string& output) {
  if (io::is_torch_save(output)) {
    fail(
        "{}: the tables of --cases must be written as safetensors, whose metadata has their errors",
        output);
  }
  StateDict tables;
  std::map<std::string, std::string> messages;
  for (const auto& entry : read_cases(path)) {
    const auto name = entry["name"].get<std::string>();
    try {
      tables.insert(name, table_of_case(entry));
    } catch (const std::exception& error) {
      messages[name] = message_of(error);
    }
  }
  save_safetensors(output, tables, messages);
}

struct TableOptions {
  std::string cases, preset, positions, output;
  std::optional<int64_t> dim, length;
  std::vector<std::string> params;
  std::string precision = "reference";
};

void make(const TableOptions& options) {
  const bool has_cases = !options.cases.empty();
  if (!has_cases && options.preset.empty()) throw CLI::RequiredError("--preset");
  if (!has_cases && !options.dim) throw CLI::RequiredError("--dim");
  const PresetParams params = Params(options.params).for_preset();
  check_output(options.output, {options.cases, options.positions});
  if (has_cases) return make_cases(options.cases, options.output);
  SinusoidOptions recipe = preset(options.preset, *options.dim, params);
  recipe.precision(options.precision == "exact" ? Precision::Exact : Precision::Reference);
  StateDict result;
  SaveOptions::Metadata metadata = {{"preset", options.preset}};
  if (!recipe.grid().empty()) {
    metadata["grid"] = fmt::format("{}", fmt::join(recipe.grid(), "x"));
  }
  if (options.positions.empty()) {
    if (!options.length && recipe.grid().empty()) {
      throw CLI::RequiredError("--length or --positions");
    }
    result.insert("table", table_of(recipe, options.length));
  } else {
    const at::Tensor positions = read_tensors(options.positions, {"positions"})["positions"];
    if (positions.dim() != 1) {
      fail("{}: `positions` must have shape (rows). Got {}", options.positions,
           shape_of(positions));
    }
    result.insert("table", sinusoid_rows(recipe, positions));
  }
  save_tensors(options.output, result, SaveOptions().metadata(metadata));
}

void add_table(CLI::App& app) {
  auto options = std::make_shared<TableOptions>();
  auto* sub = app.add_subcommand(
      "table", "Write the table of a preset, (rows, D) in float32, as safetensors.");
  auto* name =
      sub->add_option("--preset", options->preset, "the preset; `posenc presets` lists them")
          ->check(listed_choice("a preset", preset_names(), "`posenc presets`"));
  auto* dim = sub->add_option("--dim", options->dim, "D, the number of channels")
                  ->check(integer(1, kMostChannels));
  auto* rows = sub->add_option_group("rows")->require_option(0, 1);
  auto* length = rows->add_option("--length", options->length,
                                  "nominal number of rows, for positions 0 .. length-1; optional "
                                  "for a grid, where it is the number of cells")
                     ->check(integer(1, kMostRows));
  auto* positions = rows->add_option("--positions", options->positions,
                                     "safetensors with tensor `positions` (rows), integer or "
                                     "floating-point")
                        ->check(input_path());
  auto* params = sub->add_option("--param", options->params, "a parameter of the preset, key=value")
                     ->check(assignment())
                     ->allow_extra_args(false);
  auto* precision =
      sub->add_option("--precision", options->precision,
                      "reference (default): bit-identical to the original system; exact: the "
                      "formula, correctly rounded")
          ->check(choice({"reference", "exact"}));
  sub->add_option(
         "--cases", options->cases,
         "write many tables: a JSON array of {\"name\", \"preset\", \"dim\", \"length\", "
         "\"params\": {}, \"precision\"}; each tensor has the name of its case, and if a case "
         "is rejected, the metadata has the reason under its name")
      ->check(input_path())
      ->excludes(name, dim, length, positions, params, precision);
  sub->add_option("--out", options->output,
                  "safetensors file for tensor `table`; torch.save's format for .pt and .pth")
      ->required()
      ->check(output_path());
  sub->footer(
      "Example:\n"
      "  posenc table --preset whisper --dim 384 --length 1500 --out table.safetensors\n"
      "  posenc table --preset mae_2d --dim 768 --param height=14 --out grid.safetensors");
  sub->callback([options] { make(*options); });
}

const Command kTable{0, add_table};

}  // namespace
}  // namespace posenc::cli
