// posenc table: writes a preset's table to a file.

#include "posenc/positions/sinusoid/table.h"

#include <memory>

#include <fmt/ranges.h>
#include <CLI/Error.hpp>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/params.h"
#include "cli/table_cases.h"
#include "cli/weights.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

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
