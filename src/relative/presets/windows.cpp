// Windows of patches: Swin and BEiT.

#include "posenc/relative/window.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include "posenc/relative/bias.h"
#include "posenc/relative/resize.h"
#include "posenc/relative/scores.h"
#include "relative/cosine_window.h"
#include "relative/presets/rows.h"

namespace posenc::relative {
namespace {

constexpr const char* kTable = "w.relative_position_bias_table";

int64_t differences(Grid window) { return (2 * window.height - 1) * (2 * window.width - 1); }

at::Tensor window_bias(const Given& given, const char* name, Grid window, int64_t heads) {
  return relative_bias_of_indices(given.tensor(name, {differences(window), heads}),
                                  relative_window_index(window));
}

RelativeOutputs swin(const Given& given) {
  return {{"bias", window_bias(given, kTable, given.grid("window"), given.whole("heads", 1))}};
}

RelativeOutputs swin_mask(const Given& given) {
  const Grid grid = {given.whole("height", 1), given.whole("width", 1)};
  return {{"mask", shifted_window_mask(grid, given.whole("window", 1), given.whole("shift"),
                                       given.dtype())}};
}

// A mask (windows, N, N) for each of the windows of q, (B * windows, 1, N, N).
at::Tensor window_mask(const Given& given, const QueriesAndKeys& input) {
  if (!given.flag("masked")) return {};
  const at::Tensor mask = given.tensor("mask", {kAny, input.queries, input.keys});
  given.require(input.batch % mask.size(0) == 0, "`q` must have all windows of the mask",
                std::to_string(input.batch) + " and " + std::to_string(mask.size(0)));
  return mask.repeat({input.batch / mask.size(0), 1, 1}).unsqueeze(1);
}

RelativeOutputs swin_scores(const Given& given, const char* table, const Place& place) {
  const QueriesAndKeys input = queries_and_keys(given);
  const Grid window = given.grid("window");
  given.tensor("q", {kAny, kAny, window.height * window.width, kAny});
  given.tensor("k", {kAny, kAny, window.height * window.width, kAny});
  return {
      {"scores", relative_scores(input.q, input.k, window_bias(given, table, window, input.heads),
                                 window_mask(given, input), place)}};
}

// Cosine attention; the table is what a small network makes of coordinates; the mask is added
// twice.
RelativeOutputs swinv2(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const Grid window = given.grid("window"), pretrained = given.grid("pretrained_window", 0);
  given.tensor("q", {kAny, kAny, window.height * window.width, kAny});
  const at::Tensor logit_scale = given.tensor("w.logit_scale", {input.heads, 1, 1});
  const at::Tensor first = given.tensor("w.continuous_position_bias_mlp.0.weight", {kAny, 2});
  const at::Tensor first_bias =
      given.tensor("w.continuous_position_bias_mlp.0.bias", {first.size(0)});
  const at::Tensor second =
      given.tensor("w.continuous_position_bias_mlp.2.weight", {input.heads, first.size(0)});
  const at::Tensor bias = continuous_position_bias(window, pretrained, first, first_bias, second);
  const at::Tensor cosines = cosine_scores(input.q, input.k, logit_scale);
  const at::Tensor scores = cosines + bias, mask = window_mask(given, input);
  return {{"scores", mask.defined() ? scores + mask + mask : scores}};
}

RelativeOutputs beit(const Given& given) {
  constexpr int64_t kClassRows = 3;
  const Grid window = given.grid("window"), now = given.grid("new_window");
  const int64_t size = given.whole("interpolate");
  const at::Tensor table =
      given.tensor(kTable, {differences(window) + kClassRows, given.whole("heads", 1)});
  at::Tensor bias = relative_bias_of_indices(
      resize_relative_table(table, window, now, Resize::BilinearTransposed, kClassRows),
      relative_window_index(now, /*class_token=*/true));
  if (size > 0)
    bias = at::upsample_bilinear2d(bias.transpose(0, 1), at::IntArrayRef({size, size}), false)
               .transpose(0, 1);
  return {{"bias", bias}};
}

PresetRow scores_row(const char* name, const char* source, const char* summary, const char* table,
                     const Place& place) {
  return {{name, source, summary, {"window", "masked"}, {"q", "k", table, "mask"}, {"scores"}},
          [=](const Given& given) { return swin_scores(given, table, place); }};
}

PresetRow cosine_row(const char* name, const char* source) {
  return {
      {name,
       source,
       "cosine attention; a network of coordinates; the mask twice",
       {"window", "pretrained_window", "masked"},
       {"q", "k", "w.logit_scale", "w.continuous_position_bias_mlp.0.weight",
        "w.continuous_position_bias_mlp.0.bias", "w.continuous_position_bias_mlp.2.weight", "mask"},
       {"scores"}},
      swinv2};
}

PresetRow beit_row(const char* name, const char* source) {
  return {{name,
           source,
           "Swin's with a class token; bilinear, even at the same size",
           {"window", "new_window", "interpolate", "heads"},
           {kTable},
           {"bias"}},
          beit};
}

}  // namespace

PresetRows window_presets() {
  constexpr const char* kInner = "w.relative_position_bias.relative_position_bias_table";
  const Place with_term = {ScaleOf::Scores, ScaleBy::Multiply, 1, false, MaskPlace::WithTerm};
  const Place in_turn = {ScaleOf::Scores, ScaleBy::Divide};
  const char* in_turn_text = "q.k / sqrt(D), + bias, + mask";
  return {
      {{"swin",
        "transformers 5.23.0 SwinRelativePositionBias",
        "a row for each pair of differences of rows and columns",
        {"window", "heads"},
        {kTable},
        {"bias"}},
       swin},
      {{"swin_mask",
        "transformers 5.23.0 SwinLayer.get_attn_mask",
        "-100 between regions that a roll made neighbours",
        {"window", "shift", "height", "width", "dtype"},
        {},
        {"mask"}},
       swin_mask},
      scores_row("swin_scores", "transformers 5.23.0 SwinAttention.forward",
                 "q.k * D^-0.5 + (bias + mask)", kInner, with_term),
      cosine_row("swinv2", "transformers 5.23.0 Swinv2SelfAttention.forward"),
      cosine_row("swin2sr", "transformers 5.23.0 Swin2SRSelfAttention.forward"),
      scores_row("donut_swin", "transformers 5.23.0 DonutSwinSelfAttention.forward", in_turn_text,
                 kTable, in_turn),
      scores_row("clap_swin", "transformers 5.23.0 ClapAudioSelfAttention.forward", in_turn_text,
                 kTable, in_turn),
      scores_row("maskformer_swin", "transformers 5.23.0 MaskFormerSwinSelfAttention.forward",
                 in_turn_text, kTable, in_turn),
      beit_row("beit", "transformers 5.23.0 BeitRelativePositionBias"),
      beit_row("data2vec_vision", "transformers 5.23.0 Data2VecVisionRelativePositionBias"),
  };
}

}  // namespace posenc::relative
