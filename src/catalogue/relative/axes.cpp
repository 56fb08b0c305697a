// A table for each axis of a grid, whose rows the queries are multiplied by: SAM, ViTDet, MViT.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/resize.h"
#include "posenc/positions/relative/scores.h"
#include "positions/relative/axes.h"

namespace posenc::relative {
namespace {

enum class AxisResize { Always, IfNeeded, Never };

// (queries, keys, D)
at::Tensor rows_of_axis(const Given& given, const char* name, int64_t queries, int64_t keys,
                        int64_t head_dim, AxisResize resize) {
  const int64_t rows = 2 * std::max(queries, keys) - 1;
  at::Tensor table = given.tensor(name, {resize == AxisResize::Never ? rows : kAny, head_dim});
  if (resize == AxisResize::Always || table.size(0) != rows)
    table = resize_relative_axis(table, rows);
  return axis_rows(table, queries, keys);
}

// q: (N, q_h * q_w, D)
AxisTerms axis_terms(const Given& given, const at::Tensor& q, Grid queries, Grid keys,
                     AxisResize resize) {
  const int64_t width = q.size(-1);
  return relative::axis_terms(
      q, rows_of_axis(given, "w.rel_pos_h", queries.height, keys.height, width, resize),
      rows_of_axis(given, "w.rel_pos_w", queries.width, keys.width, width, resize));
}

// The scores of one term after the other, or of their sum.
RelativeOutputs sam(const Given& given, AxisResize resize, bool in_turn) {
  const QueriesAndKeys input = queries_and_keys(given);
  const Grid grid = given.grid("grid"), from = given.grid("table_grid");
  const int64_t tokens = grid.height * grid.width;
  given.tensor("q", {kAny, kAny, tokens, kAny});
  given.tensor("k", {kAny, kAny, tokens, kAny});
  given.tensor("w.rel_pos_h", {2 * from.height - 1, input.head_dim});
  given.tensor("w.rel_pos_w", {2 * from.width - 1, input.head_dim});
  // As parts of one projection's output, (B, L, 3, H, D): a view of it, or one copy.
  const at::Tensor of_tokens = input.k.transpose(1, 2);
  const at::Tensor parts = at::stack({input.q.transpose(1, 2), of_tokens, of_tokens}, 2)
                               .permute({2, 0, 3, 1, 4})
                               .reshape({3, -1, tokens, input.head_dim});
  const at::Tensor q = parts.select(0, 0), k = parts.select(0, 1);
  const auto [down, across] = axis_terms(given, q, grid, grid, resize);
  at::Tensor scores;
  if (in_turn) {
    scores = relative_scores(q, k, {}, {}, {ScaleOf::Query})
                 .view({-1, grid.height, grid.width, grid.height, grid.width});
    scores = scores + down + across;
  } else {
    scores =
        relative_scores(q, k, (down + across).reshape({-1, tokens, tokens}), {}, {ScaleOf::Query});
  }
  return {{"scores", scores.view({input.batch, input.heads, tokens, tokens})}};
}

// Added to given scores; the keys are pooled. A class token has no term.
RelativeOutputs mvit(const Given& given) {
  const Grid queries = given.grid("q_grid"), keys = given.grid("k_grid");
  const int64_t prefix = given.flag("class_token") ? 1 : 0;
  const int64_t query_tokens = queries.height * queries.width;
  const int64_t key_tokens = keys.height * keys.width;
  const at::Tensor q = given.tensor("q", {kAny, kAny, prefix + query_tokens, kAny});
  const at::Tensor scores =
      given.tensor("scores", {q.size(0), q.size(1), prefix + query_tokens, prefix + key_tokens});
  given.require_dtype("q", q);
  given.require_dtype("scores", scores);
  const auto [down, across] =
      axis_terms(given, q.slice(2, prefix), queries, keys, AxisResize::Never);
  at::Tensor result = scores.clone();
  at::Tensor patches = result.slice(2, prefix).slice(3, prefix);
  patches.copy_((patches.reshape({-1, queries.height, queries.width, keys.height, keys.width}) +
                 down + across)
                    .view(patches.sizes()));
  return {{"scores", result}};
}

PresetRow sam_row(const char* name, const char* source, const char* summary, AxisResize resize,
                  bool in_turn) {
  return {{name,
           source,
           summary,
           {"grid", "table_grid"},
           {"q", "k", "w.rel_pos_h", "w.rel_pos_w"},
           {"scores"}},
          [=](const Given& given) { return sam(given, resize, in_turn); }};
}

}  // namespace

PresetRows axis_presets() {
  const char* sum = "(q * D^-0.5).k + (q.rows + q.columns); always interpolated";
  return {
      sam_row("sam", "transformers 5.23.0 SamVisionAttention.forward", sum, AxisResize::Always,
              false),
      sam_row("got_ocr2", "transformers 5.23.0 GotOcr2VisionAttention.forward", sum,
              AxisResize::Always, false),
      sam_row("sam_hq", "transformers 5.23.0 SamHQVisionAttention.forward", sum, AxisResize::Always,
              false),
      sam_row("slanext", "transformers 5.23.0 SLANeXtVisionAttention.forward", sum,
              AxisResize::Always, false),
      sam_row("pp_formulanet", "transformers 5.23.0 PPFormulaNetVisionAttention.forward", sum,
              AxisResize::Always, false),
      sam_row("deepseek_ocr2", "transformers 5.23.0 DeepseekOcr2SamVisionAttention.forward", sum,
              AxisResize::Always, false),
      sam_row("unlimited_ocr", "transformers 5.23.0 UnlimitedOcrSamVisionAttention.forward", sum,
              AxisResize::Always, false),
      sam_row("seggpt", "transformers 5.23.0 SegGptAttention.forward",
              "the same, one after the other; always interpolated", AxisResize::Always, true),
      sam_row("vitdet", "transformers 5.23.0 VitDetAttention.forward",
              "the same, one after the other; interpolated if needed", AxisResize::IfNeeded, true),
      sam_row("timm_sam", "timm 1.0.31 vision_transformer_sam.Attention",
              "SAM's; interpolated if needed", AxisResize::IfNeeded, false),
      {{"timm_mvitv2",
        "timm 1.0.31 cal_rel_pos_type",
        "the same of pooled keys, added to given scores",
        {"q_grid", "k_grid", "class_token"},
        {"q", "k", "scores", "w.rel_pos_h", "w.rel_pos_w"},
        {"scores"}},
       mvit},
  };
}

}  // namespace posenc::relative
