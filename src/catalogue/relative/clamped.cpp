// Shaw et al. and its kin: a row for each of the near distances.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <cmath>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/scores.h"

namespace posenc::relative {
namespace {

RelativeOutputs phi4_audio(const Given& given) {
  const int64_t most = given.integer("max_distance", 1), length = given.integer("queries");
  const bool symmetric = given.flag("symmetric");
  const Clamp index = {most, most - 1, false, symmetric};
  // The symmetric table lacks the row of the largest distance: lengths below it never need it.
  const int64_t rows = symmetric ? most : 2 * most;
  const at::Tensor table = given.tensor("w.bias_values.weight", {rows, given.integer("heads", 1)});
  given.require(!symmetric || length <= most, "`queries` must be at most `max_distance`",
                std::to_string(length));
  const at::Tensor positions = at::arange(length, at::kLong);
  return {{"bias", relative_bias_of_indices(table, relative_index(positions, positions, index))}};
}

// (Q, K, D)
at::Tensor rows_of_pairs(const at::Tensor& table, int64_t queries, int64_t keys,
                         const Clamp& index) {
  return at::embedding(
      table, relative_index(at::arange(queries, at::kLong), at::arange(keys, at::kLong), index));
}

RelativeOutputs relative_key(const Given& given, ScaleBy term_scale) {
  const QueriesAndKeys input = queries_and_keys(given);
  const Clamp index = {given.integer("left"), given.integer("right")};
  const at::Tensor table =
      given.tensor("w.distance_embedding.weight", {index.left + index.right + 1, input.head_dim});
  const at::Tensor rows = rows_of_pairs(table, input.queries, input.keys, index);
  at::Tensor term = at::einsum("bhld,lrd->bhlr", {input.q, rows});
  const auto width = static_cast<double>(input.head_dim);
  term = term_scale == ScaleBy::Multiply ? term * std::pow(width, -0.5) : term / std::sqrt(width);
  return {{"scores", relative_scores(input.q, input.k, term, mask_if_masked(given, input), {})}};
}

// The sign of the distances is reversed: query - key.
RelativeOutputs speecht5(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const int64_t most = given.integer("max_length", 1);
  const at::Tensor table = given.tensor("w.rel.pe_k.weight", {2 * most, input.head_dim});
  const at::Tensor rows =
      rows_of_pairs(table, input.queries, input.keys, Clamp{most, most - 1, true});
  const at::Tensor q = (input.q * std::pow(static_cast<double>(input.head_dim), -0.5))
                           .reshape({-1, input.queries, input.head_dim});
  const at::Tensor k = input.k.reshape({-1, input.keys, input.head_dim});
  // With one sequence, queries and keys keep the strides of their projections, but not here.
  const at::Tensor term =
      at::matmul(q.contiguous().transpose(0, 1), rows.transpose(-2, -1)).transpose(0, 1);
  at::Tensor scores = (at::bmm(q, k.transpose(1, 2)) + term)
                          .view({input.batch, input.heads, input.queries, input.keys});
  const at::Tensor mask = mask_if_masked(given, input);
  return {{"scores", mask.defined() ? scores + mask : scores}};
}

// The rows of the distances from -(length - 1) to length - 1: zeros beyond the reach.
at::Tensor rows_within(const at::Tensor& table, int64_t reach, int64_t length) {
  const int64_t pad = std::max<int64_t>(length - (reach + 1), 0);
  const int64_t first = std::max<int64_t>(reach + 1 - length, 0);
  const at::Tensor padded = pad > 0 ? at::constant_pad_nd(table, {0, 0, pad, pad}) : table;
  return padded.slice(1, first, first + 2 * length - 1);
}

// Values have a table too.
RelativeOutputs vits(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  given.require(input.queries == input.keys, "`q` and `k` must have the same length",
                std::to_string(input.queries) + " and " + std::to_string(input.keys));
  const int64_t reach = given.integer("reach", 1), length = input.keys;
  const auto rows = [&](const char* name) {
    return rows_within(given.tensor(name, {1, 2 * reach + 1, input.head_dim}), reach, length);
  };
  // With one sequence, reshape() alone would keep the strides of what it is given.
  const auto of_heads_alone = [&](const at::Tensor& x) {
    return x.contiguous().view({-1, length, input.head_dim});
  };
  const at::Tensor v =
      of_heads_alone(given.tensor("v", {input.batch, input.heads, length, input.head_dim}));
  const at::Tensor q =
      of_heads_alone(input.q * std::pow(static_cast<double>(input.head_dim), -0.5));
  const at::Tensor k = of_heads_alone(input.k);
  const at::Tensor term =
      relative_shift(at::matmul(q, rows("w.emb_rel_k").transpose(-2, -1)), length, length - 1);
  const at::Tensor mask = mask_if_masked(given, input);
  at::Tensor scores = at::bmm(q, k.transpose(1, 2)) + term;
  const std::vector<int64_t> of_heads = {input.batch, input.heads, length, length};
  if (mask.defined()) scores = (scores.view(of_heads) + mask).view({-1, length, length});
  const at::Tensor weights = at::softmax(scores, -1);
  // The reverse of the shift: the weight of each distance.
  at::Tensor of_distances =
      at::constant_pad_nd(weights, {0, length - 1}).reshape({-1, length * (2 * length - 1)});
  of_distances =
      at::constant_pad_nd(of_distances, {length, 0}).view({-1, length, 2 * length}).slice(-1, 1);
  const at::Tensor output = at::bmm(weights, v) + at::matmul(of_distances, rows("w.emb_rel_v"));
  return {{"scores", scores.view(of_heads)}, {"output", output.view(input.q.sizes())}};
}

PresetRow key_row(const char* name, const char* source, const char* summary, ScaleBy term_scale) {
  return {{name,
           source,
           summary,
           {"left", "right", "masked"},
           {"q", "k", "w.distance_embedding.weight", "mask"},
           {"scores"}},
          [=](const Given& given) { return relative_key(given, term_scale); }};
}

}  // namespace

PresetRows clamp_presets() {
  return {
      {{"phi4_audio",
        "transformers 5.23.0 Phi4MultimodalAudioRelativeAttentionBias",
        "clamped to [-m, m - 1]",
        {"max_distance", "symmetric", "heads", "queries"},
        {"w.bias_values.weight"},
        {"bias"}},
       phi4_audio},
      key_row("wav2vec2_bert_relative_key", "transformers 5.23.0 Wav2Vec2BertSelfAttention.forward",
              "q.k * D^-0.5 + q.rows * D^-0.5, + mask", ScaleBy::Multiply),
      key_row("seamless_m4t_v2_relative_key",
              "transformers 5.23.0 SeamlessM4Tv2ConformerSelfAttention.forward",
              "q.k * D^-0.5 + q.rows / sqrt(D), + mask", ScaleBy::Divide),
      {{"speecht5",
        "transformers 5.23.0 SpeechT5Attention.forward",
        "q scaled first; by query - key",
        {"max_length", "masked"},
        {"q", "k", "w.rel.pe_k.weight", "mask"},
        {"scores"}},
       speecht5},
      {{"vits",
        "transformers 5.23.0 VitsAttention.forward",
        "q scaled first; zeros beyond the reach; values have a table too",
        {"reach", "masked"},
        {"q", "k", "v", "w.emb_rel_k", "w.emb_rel_v", "mask"},
        {"scores", "output"}},
       vits},
  };
}

}  // namespace posenc::relative
