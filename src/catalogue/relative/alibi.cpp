// Slopes: a key's bias is its distance times a number of the head.

#include "posenc/positions/relative/alibi.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/scores.h"

namespace posenc::relative {
namespace {

// (B, H, 1, K): the positions of the tokens, in the dtype of the settings. Falcon rounds the slopes
// to bfloat16, whatever the dtype.
at::Tensor token_alibi(const Given& given, int64_t heads, bool rounds) {
  at::Tensor slopes = alibi_slopes(heads, Slopes::Bloom).unsqueeze(-1);
  if (rounds) slopes = slopes.to(at::kBFloat16);
  const at::Tensor positions = alibi_positions(given.integers("mask", {kAny, kAny})).unsqueeze(1);
  return (slopes * positions).unsqueeze(2).to(given.dtype());
}

RelativeOutputs token_bias(const Given& given, bool rounds) {
  return {{"bias", token_alibi(given, given.integer("heads", 1), rounds)}};
}

RelativeOutputs token_scores(const Given& given, bool rounds, const Scoring& scoring) {
  const QueriesAndKeys input = fused_queries_and_keys(given, Fused::Heads);
  const at::Tensor additive = given.of_rank("additive", 4);
  given.tensor("mask", {input.batch, input.keys});
  return {{"scores", relative_scores(input.q, input.k, token_alibi(given, input.heads, rounds),
                                     additive, scoring)}};
}

RelativeOutputs mpt(const Given& given) {
  const int64_t heads = given.integer("heads", 1), keys = given.integer("keys", 1);
  const at::Tensor slopes =
      alibi_slopes(heads, Slopes::Mpt, given.real("bias_max")).view({1, heads, 1, 1});
  return {{"bias", at::arange(1 - keys, 1, at::kInt).view({1, 1, 1, keys}) * slopes}};
}

// Two-sided; the last heads have no bias.
RelativeOutputs x_transformers_alibi(const Given& given) {
  const int64_t heads = given.integer("heads", 1), total = given.integer("total_heads", 1);
  const int64_t queries = given.integer("queries", 1), keys = given.integer("keys", 1);
  given.require(total >= heads, "`total_heads` must be at least `heads`", std::to_string(total));
  given.require(keys >= queries, "`keys` must be at least `queries`", std::to_string(keys));
  const at::Tensor slopes =
      alibi_slopes(heads, Slopes::XTransformers).to(given.dtype()).view({heads, 1, 1});
  const at::Tensor distances = -(at::arange(keys, at::kLong).view({1, 1, keys}) -
                                 at::arange(keys - queries, keys, at::kLong).view({1, queries, 1}))
                                    .abs();
  return {{"bias",
           at::constant_pad_nd(distances * slopes, {0, 0, 0, 0, 0, total - heads}).unsqueeze(0)}};
}

}  // namespace

PresetRows alibi_presets() {
  const Scoring bloom_scoring = {ScaleOf::ProductInOneSum};
  const Scoring falcon_scoring = {
      ScaleOf::ScoresAndTerm, ScaleBy::Multiply, 1, false, Masking::AfterTerm, true};
  const std::vector<std::string> scores = {"q", "k", "mask", "additive"};
  return {
      {{"bloom",
        "transformers 5.23.0 BLOOM build_alibi_tensor",
        "slopes times the number of tokens before",
        {"heads", "dtype"},
        {"mask"},
        {"bias"}},
       [](const Given& given) { return token_bias(given, false); }},
      {{"falcon",
        "transformers 5.23.0 Falcon build_alibi_tensor",
        "the same with slopes in bfloat16",
        {"heads", "dtype"},
        {"mask"},
        {"bias"}},
       [](const Given& given) { return token_bias(given, true); }},
      {{"bloom_scores",
        "transformers 5.23.0 BloomAttention.forward",
        "q.k / sqrt(D) + alibi in one sum, + mask",
        {"dtype"},
        scores,
        {"scores"}},
       [=](const Given& given) { return token_scores(given, false, bloom_scoring); }},
      {{"falcon_scores",
        "transformers 5.23.0 FalconAttention.forward",
        "(q.k + alibi) / sqrt(D) in float32, + mask",
        {"dtype"},
        scores,
        {"scores"}},
       [=](const Given& given) { return token_scores(given, true, falcon_scoring); }},
      {{"mpt",
        "transformers 5.23.0 build_mpt_alibi_tensor",
        "slopes of the next power of two; columns, not tokens",
        {"bias_max", "heads", "keys"},
        {},
        {"bias"}},
       mpt},
      {{"x_transformers_alibi",
        "x-transformers 2.31.10 AlibiPositionalBias",
        "two-sided; heads without a bias",
        {"total_heads", "heads", "queries", "keys", "dtype"},
        {},
        {"bias"}},
       x_transformers_alibi},
  };
}

}  // namespace posenc::relative
