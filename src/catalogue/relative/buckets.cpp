// T5's buckets and its kin.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/scores.h"

namespace posenc::relative {
namespace {

constexpr const char* kT5Table = "w.relative_attention_bias.weight";

Buckets buckets_of(const Given& given) {
  return {given.integer("num_buckets"), given.integer("max_distance"), given.flag("bidirectional")};
}

at::Tensor t5_bias(const Given& given, const char* table, const Buckets& buckets, int64_t offset) {
  return relative_position_bias(
      given.tensor(table, {buckets.num_buckets, given.integer("heads", 1)}),
      given.integer("queries"), given.integer("keys"), buckets, offset);
}

RelativeOutputs t5(const Given& given) {
  return {{"bias", t5_bias(given, kT5Table, buckets_of(given), given.integer("offset"))}};
}

// A decoder without an encoder of its own kind.
RelativeOutputs one_sided(const Given& given) {
  const Buckets buckets{given.integer("num_buckets"), given.integer("max_distance"), false};
  return {{"bias", t5_bias(given, kT5Table, buckets, given.integer("offset"))}};
}

RelativeOutputs t5_scores(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const Buckets buckets = buckets_of(given);
  const at::Tensor table = given.tensor(kT5Table, {buckets.num_buckets, input.heads});
  const at::Tensor bias =
      relative_position_bias(table, input.queries, input.keys, buckets, given.integer("offset"));
  return {{"scores", relative_scores(input.q, input.k, bias, mask_if_masked(given, input),
                                     {ScaleOf::Nothing})}};
}

// Blocks of queries attend to three blocks of keys.
RelativeOutputs longt5_local(const Given& given) {
  const Buckets buckets = buckets_of(given);
  const int64_t block = given.integer("block", 1);
  const at::Tensor table = given.tensor(kT5Table, {buckets.num_buckets, given.integer("heads", 1)});
  return {{"bias", relative_position_bias(table, block, 3 * block, buckets, block).unsqueeze(0)}};
}

// The block of each token, and for each block whether it is full; -1 for padding. Tokens after the
// last full block belong to it.
struct FixedBlocks {
  at::Tensor of_token;  // (B, L)
  at::Tensor is_full;   // (B, L / block), 1 or 0
};

FixedBlocks fixed_blocks(const at::Tensor& mask, int64_t block) {
  const int64_t length = mask.size(1), count = length / block;
  const at::Tensor share = at::ones_like(mask) / block;
  const at::Tensor before = share.cumsum(1) - share;
  const at::Tensor shifted =
      at::where(mask != 0, at::Scalar(1.0), at::Scalar(-1000.0)).to(at::kLong);
  at::Tensor ids = at::floor(shifted + before - 1.0).to(at::kLong).clamp_min(-1);
  ids = ids * mask + (mask - 1);
  const at::Tensor ends = at::arange(length, at::kLong).remainder(block) == block - 1;
  const at::Tensor full = ends.logical_and(ids >= 0).sum(-1).unsqueeze(-1) - 1;
  ids = at::where(ids < full, ids, full);
  const at::Tensor last = std::get<0>(ids.max(-1)).unsqueeze(1);
  return {ids, (at::arange(count, at::kLong).unsqueeze(0) <= last).to(at::kLong)};
}

RelativeOutputs longt5_global(const Given& given) {
  const Buckets buckets = buckets_of(given);
  const int64_t block = given.integer("global_block", 1);
  const at::Tensor mask = given.integers("mask", {kAny, kAny}).to(at::kLong);
  const at::Tensor table = given.tensor("w.global_relative_attention_bias.weight",
                                        {buckets.num_buckets, given.integer("heads", 1)});
  const FixedBlocks blocks = fixed_blocks(mask, block);
  const at::Tensor attends = mask.unsqueeze(-1) == blocks.is_full.unsqueeze(1);
  constexpr double kFar = -1e10;
  const at::Tensor fill = at::where(attends, at::Scalar(0.0), at::Scalar(kFar)).unsqueeze(1);
  const at::Tensor keys = at::arange(blocks.is_full.size(1), at::kLong);
  return {{"bias", fill + relative_position_bias(table, blocks.of_token, keys, buckets)}};
}

// MPNet has fixed numbers, and a copy for each sequence.
RelativeOutputs mpnet(const Given& given) {
  return {{"bias", t5_bias(given, kT5Table, Buckets{}, 0)
                       .expand({given.integer("batch"), -1, -1, -1})
                       .contiguous()}};
}

at::Tensor wavlm_bias(const Given& given) {
  const Buckets buckets{given.integer("num_buckets"), given.integer("max_distance"), true, true};
  return t5_bias(given, "w.rel_attn_embed.weight", buckets, 0);
}

RelativeOutputs wavlm(const Given& given) { return {{"bias", wavlm_bias(given)}}; }

// Each query's bias is multiplied by a gate of its hidden state.
RelativeOutputs wavlm_gated(const Given& given) {
  const at::Tensor bias = wavlm_bias(given);
  const int64_t heads = bias.size(1), length = bias.size(2);
  constexpr int64_t kGates = 2, kSummed = 4;
  const at::Tensor hidden = given.tensor("hidden", {kAny, length, kAny});
  given.require(hidden.size(2) % heads == 0, "`hidden` must have channels of each of `heads`",
                std::to_string(hidden.size(2)) + " and " + std::to_string(heads));
  const at::Tensor weight =
      given.tensor("w.gru_rel_pos_linear.weight", {kGates * kSummed, hidden.size(2) / heads});
  const at::Tensor linear_bias = given.tensor("w.gru_rel_pos_linear.bias", {kGates * kSummed});
  const at::Tensor constant = given.tensor("w.gru_rel_pos_const", {1, heads, 1, 1});
  const at::Tensor of_heads =
      hidden.view({hidden.size(0), length, heads, -1}).permute({0, 2, 1, 3});
  const at::Tensor gates = at::sigmoid(at::linear(of_heads, weight, linear_bias)
                                           .view({hidden.size(0), heads, length, kGates, kSummed})
                                           .sum(-1));
  const at::Tensor gate_a = gates.slice(-1, 0, 1), gate_b = gates.slice(-1, 1, 2);
  return {{"bias", (gate_a * (gate_b * constant - 1.0) + 2.0) * bias}};
}

RelativeOutputs x_transformers_t5(const Given& given) {
  const Buckets buckets = buckets_of(given);
  const int64_t offset = given.integer("keys") - given.integer("queries");
  given.require(offset >= 0, "`keys` must be at least `queries`",
                std::to_string(given.integer("keys")));
  return {{"bias", t5_bias(given, kT5Table, buckets, offset) * given.real("scale")}};
}

PresetRow t5_row(const char* name, const char* source, const char* summary) {
  return {{name,
           source,
           summary,
           {"bidirectional", "num_buckets", "max_distance", "offset", "heads", "queries", "keys"},
           {kT5Table},
           {"bias"}},
          t5};
}

}  // namespace

PresetRows bucket_presets() {
  const std::vector<std::string> both = {"num_buckets", "max_distance", "heads", "queries", "keys"};
  const std::vector<std::string> wavlm_tensors = {
      "hidden", "w.gru_rel_pos_const", "w.gru_rel_pos_linear.weight", "w.gru_rel_pos_linear.bias",
      "w.rel_attn_embed.weight"};
  return {
      t5_row("t5", "transformers 5.23.0 T5Attention.compute_bias",
             "logarithmic buckets in float32, shared by all layers"),
      t5_row("mt5", "transformers 5.23.0 MT5Attention.compute_bias", "T5's"),
      t5_row("umt5", "transformers 5.23.0 UMT5Attention.compute_bias",
             "T5's, a table for each layer"),
      t5_row("switch_transformers", "transformers 5.23.0 SwitchTransformersAttention.compute_bias",
             "T5's"),
      t5_row("pop2piano", "transformers 5.23.0 Pop2PianoAttention.compute_bias", "T5's"),
      t5_row("udop", "transformers 5.23.0 UdopAttention.compute_bias", "T5's"),
      t5_row("longt5", "transformers 5.23.0 LongT5Attention.compute_bias", "T5's"),
      {{"longt5_local",
        "transformers 5.23.0 LongT5LocalAttention.compute_bias",
        "T5's, of a block of queries and three of keys",
        {"bidirectional", "num_buckets", "max_distance", "block", "heads"},
        {kT5Table},
        {"bias"}},
       longt5_local},
      {{"longt5_global",
        "transformers 5.23.0 LongT5TransientGlobalAttention.compute_side_bias",
        "T5's, of tokens and blocks; -1e10 for other blocks",
        {"bidirectional", "num_buckets", "max_distance", "global_block", "heads"},
        {"mask", "w.global_relative_attention_bias.weight"},
        {"bias"}},
       longt5_global},
      {{"t5_scores",
        "transformers 5.23.0 T5Attention.forward",
        "no scale, + bias, + mask",
        {"bidirectional", "num_buckets", "max_distance", "offset", "masked"},
        {"q", "k", kT5Table, "mask"},
        {"scores"}},
       t5_scores},
      {{"pix2struct",
        "transformers 5.23.0 Pix2StructTextAttention.compute_bias",
        "T5's, of a decoder",
        {"num_buckets", "max_distance", "offset", "heads", "queries", "keys"},
        {kT5Table},
        {"bias"}},
       one_sided},
      {{"mpnet",
        "transformers 5.23.0 MPNetEncoder.compute_position_bias",
        "T5's with 32 buckets up to 128",
        {"batch", "heads", "queries", "keys"},
        {kT5Table},
        {"bias"}},
       mpnet},
      {{"wavlm",
        "transformers 5.23.0 WavLMAttention.compute_bias",
        "T5's, truncated after the sum",
        both,
        {"w.rel_attn_embed.weight"},
        {"bias"}},
       wavlm},
      {{"wavlm_gated",
        "transformers 5.23.0 WavLMAttention.forward",
        "times a gate of the hidden state",
        both,
        wavlm_tensors,
        {"bias"}},
       wavlm_gated},
      {{"x_transformers_t5",
        "x-transformers 2.31.10 RelativePositionBias",
        "T5's, times a scale; the last queries of the keys",
        {"bidirectional", "num_buckets", "max_distance", "scale", "heads", "queries", "keys"},
        {kT5Table},
        {"bias"}},
       x_transformers_t5},
  };
}

}  // namespace posenc::relative
