// posenc rotary: cos and sin of a model's rotary embedding, and q and k rotated by it.

#include "posenc/positions/functional/rotary.h"

#include <CLI/Error.hpp>
#include <algorithm>
#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/output.h"
#include "cli/params.h"
#include "cli/weights.h"
#include "posenc/models/rotary_config.h"
#include "posenc/weights/save.h"

namespace posenc::cli {
namespace {

namespace F = posenc::functional;
using rotary::HeadAxis;

struct RotaryArguments {
  std::string config, preset, layer_type, input, output;
  std::vector<std::string> params;
  std::string precision = "reference", layout;
};

RotaryOptions options_of(const RotaryArguments& arguments, PresetParams params,
                         const at::Tensor& q) {
  if (!arguments.config.empty()) {
    return rotary_options_from_hf(arguments.config, arguments.layer_type);
  }
  if (q.defined() && q.dim() > 0) params.try_emplace("head_dim", q.size(-1));
  return rotary_options_from_params(arguments.preset, params);
}

void check_length(const char* name, const at::Tensor& x, int64_t length, HeadAxis axis) {
  if (!x.defined() || (x.dim() != 3 && x.dim() != 4)) return;  // rotary() has the error
  const bool before = axis == HeadAxis::BeforeLength;
  const int64_t given = x.size(before ? -2 : -3);
  if (given == length) return;
  fail("{} must have the {} tokens of position_ids along L of {}; `--layout {}` reads {}. Got {}",
       name, length, before ? "(B, H, L, Dh)" : "(B, L, H, Dh)", before ? "blhd" : "bhld",
       before ? "(B, L, H, Dh)" : "(B, H, L, Dh)", shape_of(x));
}

at::Tensor tensor_in(const StateDict& tensors, const char* name) {
  return tensors.contains(name) ? tensors[name] : at::Tensor();
}

// The positions, or those of a grid's patches; undefined where cos and sin are given.
at::Tensor positions_in(const StateDict& given, const RotaryOptions& options,
                        const std::string& path) {
  if (given.contains("cos") && given.contains("sin")) {
    if (given.contains("position_ids") || given.contains("grid")) {
      fail("{} must have either positions or `cos` and `sin`; it contains {}", path,
           described(given));
    }
    return {};
  }
  if (given.contains("position_ids")) return given["position_ids"];
  if (!given.contains("grid")) {
    fail("{} must have a tensor `position_ids`, `grid`, or `cos` and `sin`; it contains {}", path,
         described(given));
  }
  const at::Tensor grid = given["grid"];
  if (grid.scalar_type() != at::kLong || grid.dim() != 1) {
    fail("`grid` must be int64 and (2) or (3), patches along each axis; it is {} {}",
         dtype_text(grid), shape_of(grid));
  }
  return rotary_grid(options, at::IntArrayRef(grid.contiguous().const_data_ptr<int64_t>(),
                                              static_cast<size_t>(grid.numel())));
}

// Models differ in the order of the axes. Without --layout, the axis of x that has the positions'
// length decides; if both or neither have it, the model's own order is used.
HeadAxis head_axis_of(const RotaryArguments& arguments, const RotaryOptions& options,
                      const at::Tensor& x, int64_t length) {
  if (arguments.layout == "bhld") return HeadAxis::BeforeLength;
  if (arguments.layout == "blhd") return HeadAxis::AfterLength;
  if (x.dim() != 4) return options.head_axis();
  const bool before = x.size(2) == length, after = x.size(1) == length;
  if (before == after) return options.head_axis();
  return before ? HeadAxis::BeforeLength : HeadAxis::AfterLength;
}

// The options for rotating x by a table of `length` rows. Tokens before an image's patches have no
// row.
F::RotaryFuncOptions func_options_of(const RotaryArguments& arguments, const RotaryOptions& options,
                                     const at::Tensor& x, int64_t length) {
  F::RotaryFuncOptions func_options;
  func_options.head_axis(head_axis_of(arguments, options, x, length));
  if (!options.axial() || x.dim() < 3) return func_options;
  const int64_t tokens = x.size(func_options.head_axis() == HeadAxis::BeforeLength ? -2 : -3);
  return func_options.prefix_tokens(std::max<int64_t>(0, tokens - length));
}

void rotate(const RotaryArguments& arguments) {
  const PresetParams params = Params(arguments.params).for_preset();
  check_output(arguments.output, {arguments.config, arguments.input});
  const StateDict given = read_tensors(arguments.input, {});
  const at::Tensor q = tensor_in(given, "q"), k = tensor_in(given, "k"), v = tensor_in(given, "v");
  const at::Tensor& hidden = q.defined() ? q : k;
  RotaryOptions options = options_of(arguments, params, hidden);
  options.precision(arguments.precision == "exact" ? Precision::Exact : Precision::Reference);
  const at::Tensor ids = positions_in(given, options, arguments.input);
  const RotaryCosSin table =
      ids.defined()
          ? rotary_cos_sin(options, ids, hidden.defined() ? hidden.scalar_type() : at::kFloat)
          : RotaryCosSin{given["cos"], given["sin"], tensor_in(given, "scale")};
  StateDict result;
  result.insert("cos", table.cos);
  result.insert("sin", table.sin);
  if (table.scale.defined()) result.insert("scale", table.scale);
  const auto rotated = [&](const at::Tensor& a, const at::Tensor& b) {
    const int64_t length = table.cos.dim() > 1 ? table.cos.size(-2) : 0;
    const auto func_options = func_options_of(arguments, options, a.defined() ? a : b, length);
    if (!options.axial()) {
      check_length("q", a, length, *func_options.head_axis());
      check_length("k", b, length, *func_options.head_axis());
    }
    return F::rotary(a, b, table, options, func_options);
  };
  if (hidden.defined()) {
    const auto [rotated_q, rotated_k] = rotated(q, k);
    if (q.defined()) result.insert("q", rotated_q);
    if (k.defined()) result.insert("k", rotated_k);
  }
  if (options.rotary_value() && v.defined()) result.insert("v", std::get<0>(rotated(v, {})));
  save_tensors(arguments.output, result);
}

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
  auto* preset = what->add_option("--preset", arguments->preset,
                                  "its name; `posenc presets --rotary` lists them")
                     ->check(listed_choice("a rotary embedding", rotary_preset_names(),
                                           "`posenc presets --rotary`"));
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
  sub->add_option(
         "--layout", arguments->layout,
         "the axes of q and k: bhld, (B, H, L, Dh), or blhd, (B, L, H, Dh); default: the one that "
         "fits the number of positions, or that of the model's own code where both fit")
      ->check(choice({"bhld", "blhd"}));
  sub->add_option(
         "--in", arguments->input,
         "safetensors: `position_ids` (B, L), (planes, B, L) or, of patches, (N, axes); or "
         "`grid`, an image's patches along each axis; or `cos` and `sin`; optionally `q` "
         "(B, H, L, Dh), `k` (B, Hkv, L, Dh) and `v`, or as --layout says")
      ->required()
      ->check(input_path());
  sub->add_option(
         "--out", arguments->output,
         "safetensors with `cos`, `sin`, `q`, `k` and `v`; torch.save's format for .pt and .pth")
      ->required()
      ->check(output_path());
  sub->footer(
      "Example:\n"
      "  posenc rotary --config config.json --in positions.safetensors --out rotary.safetensors\n"
      "  posenc rotary --preset llama --param head_dim=64 --in qk.safetensors --out "
      "rotary.safetensors");
  sub->callback([arguments] { rotate(*arguments); });
}

const Command kRotary{1, add_rotary};

}  // namespace
}  // namespace posenc::cli
