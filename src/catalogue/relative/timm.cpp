// timm's windows of patches.

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/resize.h"
#include "posenc/positions/relative/window.h"

namespace posenc::relative {
namespace {

constexpr const char* kTimmTable = "w.relative_position_bias_table";

int64_t timm_rows(Grid window, int64_t prefix) {
  return (2 * window.height - 1) * (2 * window.width - 1) + 3 * prefix;
}

// A class token or none.
int64_t timm_prefix(const Given& given) {
  const int64_t prefix = given.integer("prefix");
  given.require(prefix <= 1, "`prefix` must be 0 or 1", std::to_string(prefix));
  return prefix;
}

RelativeOutputs timm_bias(const Given& given) {
  const Grid window = given.grid("window");
  const int64_t prefix = timm_prefix(given);
  const at::Tensor table =
      given.tensor(kTimmTable, {timm_rows(window, prefix), given.integer("heads", 1)});
  return {{"bias", relative_bias_of_indices(table, relative_window_index(window, prefix > 0))}};
}

RelativeOutputs timm_resized(const Given& given) {
  const Grid window = given.grid("window"), now = given.grid("new_window");
  const int64_t prefix = timm_prefix(given);
  const at::Tensor table = resize_relative_table(
      given.tensor(kTimmTable, {timm_rows(window, prefix), given.integer("heads", 1)}), window, now,
      Resize::GeometricLinear, 3 * prefix);
  return {{"table", table},
          {"bias", relative_bias_of_indices(table, relative_window_index(now, prefix > 0))}};
}

// A table that a small network makes of coordinates. Swin's second layer has no bias; its entries
// are squashed.
RelativeOutputs timm_mlp(const Given& given) {
  const Grid window = given.grid("window"), pretrained = given.grid("pretrained_window", 0);
  const int64_t prefix = timm_prefix(given), heads = given.integer("heads", 1);
  const int64_t hidden = given.integer("hidden", 1);
  const std::string mode = given.text("mode");
  given.require(mode == "swin" || mode == "cr", "`mode` must be swin or cr", mode);
  const bool swin = mode == "swin";
  const at::Tensor first = given.tensor("w.mlp.fc1.weight", {hidden, 2});
  const at::Tensor second = given.tensor("w.mlp.fc2.weight", {heads, hidden});
  const at::Tensor first_bias = given.tensor("w.mlp.fc1.bias", {hidden});
  const at::Tensor second_bias = swin ? at::Tensor() : given.tensor("w.mlp.fc2.bias", {heads});
  const at::Tensor coordinates =
      relative_log_coordinates(
          window, swin ? LogCoordinates::TimmSwin : LogCoordinates::TimmNatural, pretrained)
          .to(first.scalar_type());
  const at::Tensor inner = at::relu(at::linear(coordinates, first, first_bias));
  const at::Tensor table = at::linear(inner, second, second_bias).view({-1, heads});
  // The sigmoid's bits depend on an entry's place in memory, where the class has the heads last.
  const int64_t tokens = window.height * window.width;
  at::Tensor bias = table.index_select(0, relative_window_index(window).flatten())
                        .view({tokens, tokens, heads})
                        .permute({2, 0, 1});
  if (swin) bias = at::sigmoid(bias) * 16;
  return {{"bias", at::constant_pad_nd(bias, {prefix, 0, prefix, 0}).unsqueeze(0).contiguous()}};
}

// The table is (H, 2 h - 1, 2 w - 1), and distances are key - query.
RelativeOutputs timm_maxvit(const Given& given) {
  const Grid window = given.grid("window");
  const int64_t heads = given.integer("heads", 1);
  const at::Tensor table =
      given.tensor(kTimmTable, {heads, 2 * window.height - 1, 2 * window.width - 1});
  return {{"bias", relative_bias_of_indices(table.reshape({heads, -1}).t(),
                                            relative_window_index(window).t())}};
}

RelativeOutputs timm_levit(const Given& given, int64_t stride) {
  const Grid grid = given.grid("window");
  const at::Tensor table =
      given.tensor("w.attention_biases", {given.integer("heads", 1), grid.height * grid.width});
  return {{"bias", relative_bias_of_indices(table.t(), relative_distance_index(grid, stride))}};
}

}  // namespace

PresetRows timm_presets() {
  const std::vector<std::string> levit = {"w.attention_biases"};
  const auto square = [](const Given& given) { return timm_levit(given, 1); };
  return {
      {{"timm_rel_pos_bias",
        "timm 1.0.31 RelPosBias",
        "Swin's, or BEiT's with a class token",
        {"window", "prefix", "heads"},
        {kTimmTable},
        {"bias"}},
       timm_bias},
      {{"timm_resized",
        "timm 1.0.31 RelPosBias.set_window_size",
        "the same, resized between geometric points",
        {"window", "prefix", "new_window", "heads"},
        {kTimmTable},
        {"table", "bias"}},
       timm_resized},
      {{"timm_mlp",
        "timm 1.0.31 RelPosMlp",
        "a network of coordinates, Swin v2's or timm's own",
        {"window", "hidden", "prefix", "mode", "pretrained_window", "heads"},
        {"w.mlp.fc1.weight", "w.mlp.fc1.bias", "w.mlp.fc2.weight", "w.mlp.fc2.bias"},
        {"bias"}},
       timm_mlp},
      {{"timm_maxvit_tf",
        "timm 1.0.31 RelPosBiasTf",
        "a table (H, 2 h - 1, 2 w - 1), by key - query",
        {"window", "heads"},
        {kTimmTable},
        {"bias"}},
       timm_maxvit},
      {{"timm_levit",
        "timm 1.0.31 levit.Attention",
        "absolute differences of rows and columns",
        {"window", "heads"},
        levit,
        {"bias"}},
       square},
      {{"timm_levit_down",
        "timm 1.0.31 levit.AttentionDownsample",
        "the same; queries of every stride-th patch",
        {"window", "stride", "heads"},
        levit,
        {"bias"}},
       [](const Given& given) { return timm_levit(given, given.integer("stride", 1)); }},
      {{"timm_tiny_vit",
        "timm 1.0.31 tiny_vit.Attention",
        "LeViT's",
        {"window", "heads"},
        levit,
        {"bias"}},
       square},
      {{"timm_efficientvit_msra",
        "timm 1.0.31 efficientvit_msra.CascadedGroupAttention",
        "LeViT's",
        {"window", "heads"},
        levit,
        {"bias"}},
       square},
  };
}

}  // namespace posenc::relative
