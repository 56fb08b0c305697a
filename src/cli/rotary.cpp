// posenc rotary: cos and sin of a model's rotary embedding, and q and k rotated by it.

#include "posenc/functional/rotary.h"

#include <CLI/Error.hpp>
#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/params.h"
#include "cli/weights.h"
#include "posenc/io/safetensors.h"
#include "posenc/models/rotary_config.h"

namespace posenc::cli {
namespace {

namespace F = posenc::functional;
using rotary::HeadAxis;

struct RotaryArguments {
  std::string config, preset, layer_type, input, output;
  std::vector<std::string> params;
  std::string precision = "reference";
};

RotaryOptions options_of(const RotaryArguments& arguments, const at::Tensor& q) {
  if (!arguments.config.empty()) {
    return rotary_options_from_hf(arguments.config, arguments.layer_type);
  }
  PresetParams params = Params(arguments.params).for_preset();
  if (q.defined() && q.dim() > 0) params.try_emplace("head_dim", q.size(-1));
  return rotary_options_from_params(arguments.preset, params);
}

// Models differ in the order of the axes. Where q has the positions' length along one of the two
// only, that decides; where along both, the model's own order does.
HeadAxis head_axis_of(const RotaryOptions& options, const at::Tensor& q, const at::Tensor& ids) {
  if (!q.defined() || q.dim() != 4 || ids.dim() == 0) return options.head_axis();
  const int64_t length = ids.size(options.axial() && ids.dim() > 1 ? -2 : -1);
  const bool before = q.size(2) == length, after = q.size(1) == length;
  if (before == after) return options.head_axis();
  return before ? HeadAxis::BeforeLength : HeadAxis::AfterLength;
}

at::Tensor tensor_in(const StateDict& tensors, const char* name) {
  return tensors.contains(name) ? tensors[name] : at::Tensor();
}

void rotate(const RotaryArguments& arguments) {
  const StateDict given = read_tensors(arguments.input, {"position_ids"});
  const at::Tensor ids = given["position_ids"];
  const at::Tensor q = tensor_in(given, "q"), k = tensor_in(given, "k");
  RotaryOptions options = options_of(arguments, q.defined() ? q : k);
  options.precision(arguments.precision == "exact" ? Precision::Exact : Precision::Reference);
  const at::Tensor& hidden = q.defined() ? q : k;
  const RotaryCosSin table =
      rotary_cos_sin(options, ids, hidden.defined() ? hidden.scalar_type() : at::kFloat);
  StateDict result;
  result.insert("cos", table.cos);
  result.insert("sin", table.sin);
  if (hidden.defined()) {
    const auto how = F::RotaryFuncOptions().head_axis(head_axis_of(options, hidden, ids));
    const auto [rotated_q, rotated_k] = F::rotary(q, k, table, options, how);
    if (q.defined()) result.insert("q", rotated_q);
    if (k.defined()) result.insert("k", rotated_k);
  }
  save_safetensors(arguments.output, result);
}

}  // namespace

void add_rotary(CLI::App& app) {
  auto arguments = std::make_shared<RotaryArguments>();
  auto* sub = app.add_subcommand("rotary",
                                 "Compute a model's rotary embedding: cos and sin, and q and k "
                                 "rotated by them.");
  auto* what = sub->add_option_group("embedding")->require_option(1);
  auto* config =
      what->add_option("--config", arguments->config,
                       "config.json of a Hugging Face model, whose model_type says which")
          ->check(input_path());
  auto* preset =
      what->add_option("--preset", arguments->preset, "its name; `posenc presets` lists them");
  sub->add_option("--param", arguments->params,
                  "a parameter of the preset by its name in a config.json, such as head_dim=128, "
                  "rope_theta=500000, rope_type=linear, factor=4")
      ->check(assignment())
      ->allow_extra_args(false)
      ->needs(preset);
  sub->add_option("--layer-type", arguments->layer_type,
                  "the kind of layer, where a model has a rotary embedding for each")
      ->needs(config);
  sub->add_option("--precision", arguments->precision,
                  "reference (default): the system's own bits; exact: cos and sin of the real "
                  "angle, rounded once")
      ->check(choice({"reference", "exact"}));
  sub->add_option("--in", arguments->input,
                  "safetensors: `position_ids` (B, L), or (planes, B, L); optionally `q` (B, H, L, "
                  "Dh) and `k` (B, Hkv, L, Dh)")
      ->required()
      ->check(input_path());
  sub->add_option("--out", arguments->output,
                  "safetensors with `cos`, `sin`, `q` and `k`, any extension")
      ->required()
      ->check(output_path());
  sub->footer(
      "Example:\n"
      "  posenc rotary --config config.json --in positions.safetensors --out rotary.safetensors\n"
      "  posenc rotary --preset llama --param head_dim=64 --in qk.safetensors --out "
      "rotary.safetensors");
  sub->callback([arguments] { rotate(*arguments); });
}

}  // namespace posenc::cli
