// Windows of patches: Swin and BEiT.

#include "posenc/positions/relative/window.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/upsample_bilinear2d.h>

#include <string>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/resize.h"
#include "posenc/positions/relative/scores.h"
#include "positions/relative/cosine_window.h"
#include "positions/relative/limits.h"
#include "positions/relative/masked.h"

namespace posenc::relative {
namespace {

constexpr const char* kTable = "w.relative_position_bias_table";
constexpr const char* kInnerTable = "w.relative_position_bias.relative_position_bias_table";

int64_t differences(Grid window) { return (2 * window.height - 1) * (2 * window.width - 1); }

at::Tensor window_bias(const Given& given, const char* name, Grid window, int64_t heads) {
  // transformers 5.23 moved Swin's table into a module of its own; older files have the other name.
  if (!given.has(name)) {
    for (const char* other : {kTable, kInnerTable}) {
      if (given.has(other)) name = other;
    }
  }
  const at::Tensor table = given.tensor(name, {differences(window), heads});
  return relative_bias_of_indices(table, relative_window_index(window));
}

RelativeOutputs swin(const Given& given) {
  return {{"bias", window_bias(given, kTable, given.grid("window"), given.integer("heads", 1))}};
}

RelativeOutputs swin_mask(const Given& given) {
  const Grid grid = {given.integer("height", 1), given.integer("width", 1)};
  return {{"mask", shifted_window_mask(grid, given.integer("window", 1), given.integer("shift"),
                                       given.dtype())}};
}

// A mask (windows, N, N) for each of the windows of q, (B * windows, 1, N, N).
at::Tensor window_mask(const Given& given, const QueriesAndKeys& input) {
  if (!given.flag("masked")) return {};
  const at::Tensor mask = given.tensor("mask", {kAny, input.queries, input.keys});
  given.require(mask.size(0) > 0 && input.batch % mask.size(0) == 0,
                "`q` must have all windows of the mask",
                std::to_string(input.batch) + " and " + std::to_string(mask.size(0)));
  return mask.repeat({input.batch / mask.size(0), 1, 1}).unsqueeze(1);
}

RelativeOutputs window_scores(const Given& given, const QueriesAndKeys& input, const char* table,
                              const Scoring& scoring, bool has_mask) {
  const Grid window = given.grid("window");
  given.tensor("q", {kAny, kAny, window.height * window.width, kAny});
  given.tensor("k", {kAny, kAny, window.height * window.width, kAny});
  return {
      {"scores", relative_scores(input.q, input.k, window_bias(given, table, window, input.heads),
                                 has_mask ? window_mask(given, input) : at::Tensor(), scoring)}};
}

RelativeOutputs swin_scores(const Given& given, const char* table, const Scoring& scoring) {
  return window_scores(given, queries_and_keys(given), table, scoring, true);
}

RelativeOutputs timm_swin(const Given& given) {
  return window_scores(given, fused_queries_and_keys(given, Fused::Parts), kTable, {ScaleOf::Query},
                       true);
}

// The class makes the transposed keys contiguous, whose product adds in another order.
RelativeOutputs timm_gcvit(const Given& given, const char* table) {
  QueriesAndKeys input = fused_queries_and_keys(given, Fused::Parts);
  input.k = input.k.transpose(-1, -2).contiguous().transpose(-1, -2);
  return window_scores(given, input, table, {ScaleOf::Query}, false);
}

// Cosines times a learned scale of each head, and a bias. The mask is added once or twice.
RelativeOutputs biased_cosines(const Given& given, const QueriesAndKeys& input,
                               const at::Tensor& logit_scale, const at::Tensor& bias,
                               Masking masking) {
  Scoring scoring;
  scoring.masking = masking;
  return {{"scores", masked(cosine_scores(input.q, input.k, logit_scale) + bias,
                            window_mask(given, input), scoring)}};
}

// What differs between the copies of Swin v2: the names of the network's parameters, a window of
// one row or column, how often the mask is added, and whether one projection makes queries and
// keys.
struct CosineKind {
  std::string network;
  LogCoordinates coordinates;
  Masking masking;
  bool fused;

  std::string name(const char* parameter) const { return "w." + network + "." + parameter; }
};

// The table is what a small network makes of coordinates.
RelativeOutputs swinv2(const Given& given, const CosineKind& kind) {
  const QueriesAndKeys input =
      kind.fused ? fused_queries_and_keys(given, Fused::Parts) : queries_and_keys(given);
  const Grid window = given.grid("window"), pretrained = given.grid("pretrained_window", 0);
  given.tensor("q", {kAny, kAny, window.height * window.width, kAny});
  given.tensor("k", {kAny, kAny, window.height * window.width, kAny});
  const at::Tensor logit_scale = given.tensor("w.logit_scale", {input.heads, 1, 1});
  const at::Tensor first = given.tensor(kind.name("0.weight").c_str(), {kAny, 2});
  const at::Tensor first_bias = given.tensor(kind.name("0.bias").c_str(), {first.size(0)});
  const at::Tensor second =
      given.tensor(kind.name("2.weight").c_str(), {input.heads, first.size(0)});
  return biased_cosines(
      given, input, logit_scale,
      continuous_position_bias(window, pretrained, kind.coordinates, first, first_bias, second),
      kind.masking);
}

// The network is asked for each pair of patches, and not for each difference.
RelativeOutputs swinv2_cr(const Given& given) {
  const QueriesAndKeys input = fused_queries_and_keys(given, Fused::Parts);
  const Grid window = given.grid("window");
  const int64_t tokens = window.height * window.width;
  given.tensor("q", {kAny, kAny, tokens, kAny});
  given.tensor("k", {kAny, kAny, tokens, kAny});
  const at::Tensor first = given.tensor("w.meta_mlp.fc1.weight", {kAny, 2});
  const at::Tensor second = given.tensor("w.meta_mlp.fc2.weight", {input.heads, first.size(0)});
  const at::Tensor first_bias = given.tensor("w.meta_mlp.fc1.bias", {first.size(0)});
  const at::Tensor second_bias = given.tensor("w.meta_mlp.fc2.bias", {input.heads});
  const at::Tensor coordinates = relative_log_coordinates(window, LogCoordinates::TimmNatural)
                                     .view({-1, 2})
                                     .index_select(0, relative_window_index(window).flatten())
                                     .to(first.scalar_type());
  const at::Tensor bias =
      at::linear(at::relu(at::linear(coordinates, first, first_bias)), second, second_bias)
          .t()
          .reshape({1, input.heads, tokens, tokens});
  return biased_cosines(given, input, given.tensor("w.logit_scale", {input.heads}).view({-1, 1, 1}),
                        bias, Masking::AfterTerm);
}

RelativeOutputs beit(const Given& given) {
  constexpr int64_t kClassRows = 3;
  const Grid window = given.grid("window"), now = given.grid("new_window");
  const int64_t size = given.integer("interpolate");
  given.require(size <= kMostPatches,
                "`interpolate` must be at most " + std::to_string(kMostPatches),
                std::to_string(size));
  const at::Tensor table =
      given.tensor(kTable, {differences(window) + kClassRows, given.integer("heads", 1)});
  at::Tensor bias = relative_bias_of_indices(
      resize_relative_table(table, window, now, Resize::BilinearTransposed, kClassRows),
      relative_window_index(now, /*class_token=*/true));
  if (size > 0)
    bias = at::upsample_bilinear2d(bias.transpose(0, 1), at::IntArrayRef({size, size}), false)
               .transpose(0, 1);
  return {{"bias", bias}};
}

PresetRow scores_row(const char* name, const char* source, const char* summary, const char* table,
                     const Scoring& scoring) {
  return {{name, source, summary, {"window", "masked"}, {"q", "k", table, "mask"}, {"scores"}},
          [=](const Given& given) { return swin_scores(given, table, scoring); }};
}

PresetRow cosine_row(const char* name, const char* source, const char* summary,
                     const CosineKind& kind) {
  return {{name,
           source,
           summary,
           {"window", "pretrained_window", "masked"},
           {"q", "k", "w.logit_scale", kind.name("0.weight"), kind.name("0.bias"),
            kind.name("2.weight"), "mask"},
           {"scores"}},
          [=](const Given& given) { return swinv2(given, kind); }};
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
  constexpr const char* kGcTable = "w.rel_pos.relative_position_bias_table";
  const Scoring with_term = {ScaleOf::Scores, ScaleBy::Multiply, 1, false, Masking::WithTerm};
  const Scoring in_turn = {ScaleOf::Scores, ScaleBy::Divide};
  const CosineKind twice = {"continuous_position_bias_mlp", LogCoordinates::SwinV2, Masking::Twice,
                            false};
  const char* twice_text = "cosine attention; a network of coordinates; the mask twice";
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
                 "q.k * D^-0.5 + (bias + mask)", kInnerTable, with_term),
      cosine_row("swinv2", "transformers 5.23.0 Swinv2SelfAttention.forward", twice_text, twice),
      cosine_row("swin2sr", "transformers 5.23.0 Swin2SRSelfAttention.forward", twice_text, twice),
      scores_row("donut_swin", "transformers 5.23.0 DonutSwinSelfAttention.forward", in_turn_text,
                 kTable, in_turn),
      scores_row("clap_swin", "transformers 5.23.0 ClapAudioSelfAttention.forward", in_turn_text,
                 kTable, in_turn),
      scores_row("maskformer_swin", "transformers 5.23.0 MaskFormerSwinSelfAttention.forward",
                 in_turn_text, kTable, in_turn),
      {{"timm_swin",
        "timm 1.0.31 swin_transformer.WindowAttention",
        "(q * D^-0.5).k, + bias, + mask",
        {"window", "masked"},
        {"q", "k", kTable, "mask"},
        {"scores"}},
       timm_swin},
      {{"timm_gcvit",
        "timm 1.0.31 gcvit.WindowAttentionGlobal",
        "(q * D^-0.5).k, + bias",
        {"window"},
        {"q", "k", kGcTable},
        {"scores"}},
       [=](const Given& given) { return timm_gcvit(given, kGcTable); }},
      cosine_row("timm_swinv2", "timm 1.0.31 swin_transformer_v2.WindowAttention",
                 "cosine attention; a network of coordinates; the mask once",
                 {"cpb_mlp", LogCoordinates::TimmSwinV2, Masking::AfterTerm, true}),
      {{"timm_swinv2_cr",
        "timm 1.0.31 swin_transformer_v2_cr.WindowMultiHeadAttention",
        "cosine attention; a network of natural logarithms of each pair",
        {"window", "masked"},
        {"q", "k", "w.logit_scale", "w.meta_mlp.fc1.weight", "w.meta_mlp.fc1.bias",
         "w.meta_mlp.fc2.weight", "w.meta_mlp.fc2.bias", "mask"},
        {"scores"}},
       swinv2_cr},
      beit_row("beit", "transformers 5.23.0 BeitRelativePositionBias"),
      beit_row("data2vec_vision", "transformers 5.23.0 Data2VecVisionRelativePositionBias"),
  };
}

}  // namespace posenc::relative
