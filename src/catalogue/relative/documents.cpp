// Positions of boxes, segments and documents.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/log.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/scores.h"
#include "positions/relative/limits.h"

namespace posenc::relative {
namespace {

constexpr const char* kUdopTable = "w.relative_attention_bias.weight";

// The distances of tokens at real positions (B, L), enlarged and truncated.
at::Tensor enlarged_distances(const at::Tensor& positions, double factor) {
  const at::Tensor distances = positions.unsqueeze(1) - positions.unsqueeze(2);
  return (distances.to(at::kFloat) * factor).to(at::kLong);
}

// The rows for the prefix: tokens whose boxes are negative, which come first.
at::Tensor with_prefix_rows(const at::Tensor& index, const at::Tensor& bbox, int64_t rows) {
  const at::Tensor prefix = (bbox.select(-1, 1) < 0).sum(-1).view({-1, 1});
  const at::Tensor in_prefix = at::arange(index.size(-1), at::kLong).unsqueeze(0) < prefix;
  const at::Tensor query = in_prefix.unsqueeze(2), key = in_prefix.unsqueeze(1);
  const at::Tensor leaving = query.logical_and(key.logical_not());
  const at::Tensor entering = key.logical_and(query.logical_not());
  return at::where(entering, at::Scalar(rows + 1), at::where(leaving, at::Scalar(rows), index));
}

enum class Side { Sequence, Horizontal, Vertical };

RelativeOutputs udop(const Given& given, Side side) {
  const Buckets buckets{given.integer("num_buckets"), given.integer("max_distance"),
                        given.flag("bidirectional")};
  const bool has_prefix = given.flag("prefix_bucket");
  const double factor = given.real("scaling_factor");
  const at::Tensor bbox = given.tensor("bbox", {kAny, kAny, 4});
  const at::Tensor mask = given.tensor("mask", {bbox.size(0), bbox.size(1)});
  given.require(bbox.is_floating_point(), "`bbox` must be floating-point",
                toString(bbox.scalar_type()));
  at::Tensor positions;
  if (side == Side::Sequence) {
    given.require(factor == 1, "`scaling_factor` must be 1", std::to_string(factor));
    positions = at::arange(mask.size(1), at::kLong).unsqueeze(0);
  } else {
    given.require(factor > 1, "`scaling_factor` must be larger than 1", std::to_string(factor));
    const int64_t first = side == Side::Horizontal ? 0 : 1;
    positions = bbox.slice(-1, first, 4, 2).mean(-1);  // the middle of the box
  }
  at::Tensor index = relative_index(enlarged_distances(positions, factor), buckets);
  if (has_prefix)
    index = with_prefix_rows(index.expand({bbox.size(0), -1, -1}), bbox, buckets.num_buckets);
  const int64_t rows = buckets.num_buckets + (has_prefix ? 2 : 0);
  const at::Tensor table = given.tensor(kUdopTable, {rows, given.integer("heads", 1)});
  return {{"bias", relative_bias_of_indices(table, index)}};
}

// Tokens of other segments have a row for each pair of segments.
RelativeOutputs cpmant(const Given& given) {
  const Buckets buckets{given.integer("num_buckets"), given.integer("max_distance")};
  const int64_t kinds = given.integer("segments", 1);
  given.require(kinds <= kMostPatches, "`segments` must be at most " + std::to_string(kMostPatches),
                std::to_string(kinds));
  const at::Tensor segment = given.integers("segment", {kAny, kAny});
  const at::Tensor table =
      given.tensor("w.relative_attention_bias",
                   {buckets.num_buckets + kinds * kinds, given.integer("heads", 1)});
  const at::Tensor query = segment.unsqueeze(2), key = segment.unsqueeze(1);
  const at::Tensor positions = at::arange(segment.size(1), at::kLong);
  const at::Tensor index =
      at::where(query == key, relative_index(positions, positions, buckets).unsqueeze(0),
                query * kinds + key + buckets.num_buckets);
  return {{"bias", relative_bias_of_indices(table, index)}};
}

struct LayoutBiases {
  at::Tensor line, plane;
};

// Tables of a Linear layer, (H, buckets): left edges and lower edges of the boxes.
LayoutBiases layout_biases(const Given& given, int64_t heads) {
  const Buckets line{given.integer("num_buckets"), given.integer("max_distance")};
  const Buckets plane{given.integer("num_buckets_2d"), given.integer("max_distance_2d")};
  const at::Tensor positions = given.integers("positions", {kAny, kAny});
  const at::Tensor bbox = given.integers("bbox", {positions.size(0), positions.size(1), 4});
  const auto bias = [&](const char* table, const at::Tensor& at, const Buckets& buckets) {
    return relative_position_bias(given.tensor(table, {heads, buckets.num_buckets}).t(), at, at,
                                  buckets);
  };
  const at::Tensor x = bias("w.rel_pos_x_bias.weight", bbox.select(-1, 0), plane);
  return {bias("w.rel_pos_bias.weight", positions, line),
          x + bias("w.rel_pos_y_bias.weight", bbox.select(-1, 3), plane)};
}

RelativeOutputs layoutlmv2(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const LayoutBiases biases = layout_biases(given, input.heads);
  const at::Tensor with_line =
      relative_scores(input.q, input.k, biases.line, {}, {ScaleOf::Query, ScaleBy::Divide});
  return {{"bias_1d", biases.line},
          {"bias_2d", biases.plane},
          {"scores", (with_line + biases.plane).to(at::kFloat)}};
}

// CogView's softmax subtracts the largest score while all are small.
at::Tensor cogview(const at::Tensor& scores) {
  constexpr double kAlpha = 32;
  const at::Tensor small = scores / kAlpha;
  return (small - small.amax(-1, true)) * kAlpha;
}

RelativeOutputs layoutlmv3(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const LayoutBiases biases = layout_biases(given, input.heads);
  const at::Tensor scores =
      relative_scores(input.q, input.k, biases.line + biases.plane, {},
                      {ScaleOf::Query, ScaleBy::Divide, 1, /*scales_term=*/true});
  return {{"bias_1d", biases.line}, {"bias_2d", biases.plane}, {"scores", cogview(scores)}};
}

// Sines and cosines of the logarithms of ratios between boxes (x, y, w, h), each by a weight.
RelativeOutputs pp_doclayout(const Given& given) {
  const int64_t width = given.integer("embed", 2), heads = given.integer("heads", 1);
  const double scale = given.real("scale"), theta = given.real("theta");
  constexpr double kEpsilon = 1e-5;
  given.require(width % 2 == 0, "`embed` must be even", std::to_string(width));
  const at::Tensor boxes = given.tensor("boxes", {kAny, kAny, 4});
  const at::Tensor weight = given.tensor("w.pos_proj.weight", {heads, 4 * width, 1, 1});
  const at::Tensor bias = given.tensor("w.pos_proj.bias", {heads});
  const at::Tensor source = boxes.unsqueeze(-2), target = boxes.unsqueeze(-3);
  const at::Tensor apart = (source.slice(-1, 0, 2) - target.slice(-1, 0, 2)).abs();
  const at::Tensor source_size = source.slice(-1, 2) + kEpsilon;
  const at::Tensor target_size = target.slice(-1, 2) + kEpsilon;
  const at::Tensor relative =
      at::cat({at::log(apart / source_size + 1.0), at::log(source_size / target_size)}, -1);
  const at::Tensor powers = at::arange(0, width, 2, at::kFloat) / (width / 2);
  const at::Tensor frequencies = at::pow(theta, powers).reciprocal().to(boxes.scalar_type());
  const at::Tensor angles = (relative * scale).unsqueeze(-1) * frequencies;
  const at::Tensor features = at::cat({angles.sin(), angles.cos()}, -1)
                                  .flatten(-2)
                                  .to(boxes.scalar_type())
                                  .permute({0, 3, 1, 2});
  return {{"bias", at::conv2d(features, weight, bias)}};
}

PresetRow udop_row(const char* name, const char* source, const char* summary, Side side) {
  return {
      {name,
       source,
       summary,
       {"bidirectional", "num_buckets", "max_distance", "prefix_bucket", "scaling_factor", "heads"},
       {"bbox", "mask", kUdopTable},
       {"bias"}},
      [side](const Given& given) { return udop(given, side); }};
}

PresetRow layout_row(const char* name, const char* source, const char* summary,
                     RelativeOutputs (*compute)(const Given&)) {
  return {{name,
           source,
           summary,
           {"num_buckets", "max_distance", "num_buckets_2d", "max_distance_2d"},
           {"positions", "bbox", "q", "k", "w.rel_pos_bias.weight", "w.rel_pos_x_bias.weight",
            "w.rel_pos_y_bias.weight"},
           {"bias_1d", "bias_2d", "scores"}},
          compute};
}

}  // namespace

PresetRows document_presets() {
  return {
      udop_row("udop_1d", "transformers 5.23.0 RelativePositionBias1D",
               "T5's, with two rows for a prefix", Side::Sequence),
      udop_row("udop_horizontal", "transformers 5.23.0 RelativePositionBiasHorizontal",
               "the same of the middles of boxes, enlarged and truncated", Side::Horizontal),
      udop_row("udop_vertical", "transformers 5.23.0 RelativePositionBiasVertical",
               "the same, downwards", Side::Vertical),
      {{"cpmant",
        "transformers 5.23.0 CpmAntSegmentPositionEmbedding",
        "T5's inside a segment, a row for each pair of segments",
        {"num_buckets", "max_distance", "segments", "heads"},
        {"segment", "w.relative_attention_bias"},
        {"bias"}},
       cpmant},
      layout_row("layoutlmv2", "transformers 5.23.0 LayoutLMv2SelfAttention",
                 "q / sqrt(D), + bias of the line, + bias of the plane", layoutlmv2),
      layout_row("layoutlmv3", "transformers 5.23.0 LayoutLMv3SelfAttention",
                 "both biases / sqrt(D) too; CogView's softmax", layoutlmv3),
      {{"pp_doclayout_v2",
        "transformers 5.23.0 PPDocLayoutV2PositionRelationEmbedding",
        "sines of the logarithms of ratios between boxes",
        {"embed", "scale", "theta", "heads"},
        {"boxes", "w.pos_proj.weight", "w.pos_proj.bias"},
        {"bias"}},
       pp_doclayout},
  };
}

}  // namespace posenc::relative
