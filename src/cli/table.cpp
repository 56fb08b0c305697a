// posenc table: a preset's table as a file.

#include "posenc/sinusoid/table.h"

#include <memory>

#include "cli/command.h"
#include "cli/error.h"
#include "cli/params.h"
#include "cli/weights.h"
#include "posenc/io/safetensors.h"
#include "posenc/sinusoid/preset.h"

namespace posenc::cli {
namespace {

struct TableOptions {
  std::string preset, positions, output;
  int64_t dim = 0, length = 0;
  std::vector<std::string> params;
};

void make(const TableOptions& options) {
  const SinusoidOptions sinusoid_options = preset(options.preset, options.dim);
  Params(options.params).allow("preset " + options.preset, {});
  StateDict result;
  if (options.positions.empty()) {
    result.insert("table", sinusoid_table(sinusoid_options, options.length));
  } else {
    const at::Tensor positions = read_tensors(options.positions, "positions")["positions"];
    if (positions.dim() != 1) {
      refuse("{}: `positions` must be (rows). Got {}", options.positions, shape_of(positions));
    }
    result.insert("table", sinusoid(sinusoid_options, positions));
  }
  save_safetensors(options.output, result, {{"preset", options.preset}});
}

}  // namespace

void add_table(CLI::App& app) {
  auto options = std::make_shared<TableOptions>();
  auto* sub =
      app.add_subcommand("table", "Write a preset's table (rows, D), float32, as safetensors.");
  sub->add_option("--preset", options->preset, "its name; `posenc presets` lists them")->required();
  sub->add_option("--dim", options->dim, "D, channels of a row")->required();
  auto* rows = sub->add_option_group("rows")->require_option(1);
  rows->add_option("--length", options->length, "rows of positions 0 .. length-1");
  rows->add_option("--positions", options->positions,
                   "safetensors: tensor `positions` (rows), integer or real");
  sub->add_option("--param", options->params, "a parameter of the preset, key=value")
      ->check(CLI::Validator(check_assignment, "key=value"))
      ->allow_extra_args(false);
  sub->add_option("--out", options->output, "safetensors with tensor `table`, any extension")
      ->required();
  sub->footer(
      "Example:\n  posenc table --preset notebook_001 --dim 512 --length 5000 --out "
      "table.safetensors");
  sub->callback([options] { make(*options); });
}

}  // namespace posenc::cli
