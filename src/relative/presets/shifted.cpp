// Transformer-XL and its kin: queries times the rows of a projected table, shifted.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "posenc/relative/scores.h"
#include "posenc/relative/term.h"
#include "relative/masked.h"
#include "relative/presets/rows.h"

namespace posenc::relative {
namespace {

struct XlNames {
  const char *pe, *linear, *bias_u, *bias_v;
};

// What a conformer's attention makes of its queries and its table.
struct XlParts {
  at::Tensor q_u;  // q + u, (B, H, Q, D)
  at::Tensor bd;   // (q + v).r, shifted, (B, H, Q, K)
};

XlParts xl_parts(const Given& given, const QueriesAndKeys& input, const XlNames& names) {
  given.require(input.queries == input.keys, "`q` and `k` must have the same length",
                std::to_string(input.queries) + " and " + std::to_string(input.keys));
  const int64_t width = input.heads * input.head_dim;
  const at::Tensor pe = given.tensor(names.pe, {kAny, 2 * input.keys - 1, width});
  given.require(pe.size(0) == 1 || pe.size(0) == input.batch, "`pe` must be of one sequence or all",
                std::to_string(pe.size(0)));
  const auto bias = [&](const char* name) {
    return given.tensor(name, {input.heads, input.head_dim}).view({1, input.heads, 1, -1});
  };
  const at::Tensor rows = at::linear(pe, given.tensor(names.linear, {width, width}))
                              .view({pe.size(0), -1, input.heads, input.head_dim})
                              .transpose(1, 2);
  const at::Tensor bd =
      relative_term(input.q + bias(names.bias_v), rows, input.keys, Shift{input.queries - 1});
  return {input.q + bias(names.bias_u), bd};
}

constexpr XlNames kConformer = {"pe", "w.linear_pos.weight", "w.pos_bias_u", "w.pos_bias_v"};
constexpr XlNames kParakeet = {"pe", "w.relative_k_proj.weight", "w.bias_u", "w.bias_v"};

RelativeOutputs conformer(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const XlParts parts = xl_parts(given, input, kConformer);
  const Place place = {ScaleOf::Scores, ScaleBy::Multiply, 1, /*scales_term=*/true};
  return {{"scores", relative_scores(parts.q_u, input.k, parts.bd, mask_if_masked(given), place)}};
}

RelativeOutputs fastspeech2(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const XlParts parts = xl_parts(given, input, kConformer);
  const bool masked = given.flag("masked");
  at::Tensor mask;
  if (masked) mask = given.tensor("mask", {input.batch, 1, input.keys}).unsqueeze(1) != 0;
  const Place place = {ScaleOf::ScoresAndTerm, ScaleBy::Divide, 1, false, MaskPlace::FillLowest};
  return {{"scores", relative_scores(parts.q_u, input.k, parts.bd, mask, place)}};
}

// The mask fills the term, which is added to scores that are not masked themselves.
RelativeOutputs parakeet(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const XlParts parts = xl_parts(given, input, kParakeet);
  at::Tensor term = parts.bd * std::pow(static_cast<double>(input.head_dim), -0.5);
  const at::Tensor mask = mask_if_masked(given);
  if (mask.defined()) term = masked(term, mask.to(at::kBool), fill_lowest());
  return {{"scores", relative_scores(parts.q_u, input.k, term, {}, {})}};
}

// Tokens come before sequences: (L, B, H, D). The shift has no padding, so that the table has a row
// more.
RelativeOutputs xlnet(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const auto tokens_first = [](const at::Tensor& x) {
    return x.permute({2, 0, 1, 3}).contiguous();
  };
  const at::Tensor q = tokens_first(input.q), k = tokens_first(input.k);
  given.require(input.keys == input.queries + given.whole("memory"),
                "`k` must have the keys of the memory and those of `q`",
                std::to_string(input.keys));
  const at::Tensor r =
      given.tensor("r", {input.keys + input.queries, input.batch, input.heads, input.head_dim});
  const auto bias = [&](const char* name) {
    return given.tensor(name, {input.heads, input.head_dim});
  };
  const at::Tensor ac = at::einsum("ibnd,jbnd->bnij", {q + bias("w.r_w_bias"), k});
  const at::Tensor bd = at::einsum("ibnd,jbnd->bnij", {q + bias("w.r_r_bias"), r});
  at::Tensor sum = ac + relative_shift(bd, input.keys, input.queries);
  if (given.flag("segments")) {
    constexpr int64_t kSegments = 2;
    const at::Tensor table = given.tensor("w.seg_embed", {kSegments, input.heads, input.head_dim});
    const at::Tensor segment =
        given.tensor("segment", {input.queries, input.keys, input.batch, kSegments});
    const at::Tensor ef = at::einsum("ibnd,snd->ibns", {q + bias("w.r_s_bias"), table});
    sum = sum + at::einsum("ijbs,ibns->bnij", {segment, ef});
  } else {
    sum = sum + 0;
  }
  at::Tensor scores = sum * (1.0 / std::sqrt(static_cast<double>(input.head_dim)));
  if (given.flag("masked")) {
    const at::Tensor mask = given.of_rank("mask", 4);
    const double far = mask.scalar_type() == at::kHalf ? 65500.0 : 1e30;
    scores = scores - mask.permute({2, 3, 0, 1}) * far;
  }
  return {{"scores", scores}};
}

// Queries and biases are scaled first; token types are a third term. Scores are float32 at last.
RelativeOutputs funnel(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const double scale = 1.0 / std::sqrt(static_cast<double>(input.head_dim));
  // A block that pools has half of the queries.
  const int64_t step = input.queries != input.keys ? 2 : 1;
  const at::Tensor q = input.q.transpose(1, 2) * scale, k = input.k.transpose(1, 2);
  const auto bias = [&](const char* name) {
    return given.tensor(name, {input.heads, input.head_dim}) * scale;
  };
  const at::Tensor kernel = given.tensor("w.r_kernel", {kAny, input.heads, input.head_dim});
  const at::Tensor pe = given.tensor("pe", {2 * input.keys + step - 1, kernel.size(0)});
  const at::Tensor content = at::einsum("bind,bjnd->bnij", {q + bias("w.r_w_bias"), k});
  const at::Tensor rows = at::einsum("td,dnh->tnh", {pe, kernel});
  const at::Tensor positional = at::einsum("binh,tnh->bnit", {q + bias("w.r_r_bias"), rows});
  at::Tensor scores = content + relative_shift(positional, input.keys, step * input.queries, step);
  if (given.flag("segments")) {
    const at::Tensor same = given.tensor("token_type", {input.batch, input.queries, input.keys});
    const at::Tensor table = given.tensor("w.seg_embed", {2, input.heads, input.head_dim});
    const at::Tensor types = at::einsum("bind,snd->bnis", {q + bias("w.r_s_bias"), table});
    scores = scores + at::where(same.to(at::kBool).unsqueeze(1), types.slice(-1, 1, 2),
                                types.slice(-1, 0, 1));
  } else {
    scores = scores + 0;
  }
  return {{"scores", scores.to(at::kFloat)}};
}

// Blocks of queries and the keys around them. The table is the sinusoid of the distances,
// projected.
RelativeOutputs gemma3n_audio(const Given& given) {
  const int64_t chunk = given.whole("chunk", 1);
  const int64_t before = std::max<int64_t>(0, given.whole("left") - 1),
                after = given.whole("right");
  const at::Tensor q = given.tensor("q", {kAny, given.whole("blocks", 1), chunk, kAny, kAny});
  const int64_t heads = q.size(3), head_dim = q.size(4), width = heads * head_dim;
  const int64_t context = chunk + before + after;
  const at::Tensor k = given.tensor("k", {q.size(0), q.size(1), context, heads, head_dim});
  const at::Tensor weight = given.tensor("w.pos_proj.weight", {width, width});
  const int64_t scales = width / 2;
  const double step = std::log(1.0e4) / static_cast<double>(std::max<int64_t>(scales - 1, 1));
  const at::Tensor frequencies = at::exp(at::arange(scales, at::kLong) * -step)
                                     .to(q.scalar_type())
                                     .to(at::kFloat);  // a buffer
  const at::Tensor distances = at::arange(before, -after - 1, -1, at::kLong);
  const at::Tensor angles =
      distances.unsqueeze(0).to(at::kFloat).unsqueeze(-1) * frequencies.view({1, 1, -1});
  const at::Tensor table = at::cat({angles.sin(), angles.cos()}, -1).to(q.scalar_type());
  const at::Tensor rows =
      at::linear(table, weight).reshape({-1, heads, head_dim}).permute({1, 2, 0});
  const at::Tensor queries = q.permute({0, 3, 1, 2, 4});
  const at::Tensor content = at::matmul(queries, k.permute({0, 3, 1, 4, 2}));
  at::Tensor term = at::matmul(queries.reshape({q.size(0), heads, -1, head_dim}), rows)
                        .reshape({q.size(0), heads, q.size(1), chunk, -1});
  // A row of zeros between the rows of a query and those of the next, which ends outside.
  term = at::constant_pad_nd(term, {0, context + 1 - term.size(-1)})
             .reshape({q.size(0), heads, q.size(1), chunk * (context + 1)})
             .slice(-1, 0, chunk * context)
             .reshape({q.size(0), heads, q.size(1), chunk, context});
  return {{"scores", content + term}};
}

PresetRow conformer_row(const char* name, const char* source) {
  return {{name,
           source,
           "(q + u).k * D^-0.5 + shift((q + v).r) * D^-0.5, + mask",
           {"masked"},
           {"q", "k", "pe", "w.pos_bias_u", "w.pos_bias_v", "w.linear_pos.weight", "mask"},
           {"scores"}},
          conformer};
}

}  // namespace

PresetRows shift_presets() {
  return {
      {{"xlnet",
        "transformers 5.23.0 XLNetRelativeAttention.rel_attn_core",
        "(ac + bd + ef) * scale - 1e30 mask",
        {"memory", "segments", "masked"},
        {"q", "k", "r", "mask", "w.r_r_bias", "w.r_s_bias", "w.r_w_bias", "w.seg_embed", "segment"},
        {"scores"}},
       xlnet},
      conformer_row("wav2vec2_conformer_relative",
                    "transformers 5.23.0 Wav2Vec2ConformerSelfAttention.forward"),
      conformer_row("wav2vec2_bert_relative",
                    "transformers 5.23.0 Wav2Vec2BertSelfAttention.forward"),
      conformer_row("seamless_m4t_relative",
                    "transformers 5.23.0 SeamlessM4TConformerSelfAttention.forward"),
      {{"parakeet",
        "transformers 5.23.0 ParakeetEncoderAttention.forward",
        "the same; the mask fills the term",
        {"masked"},
        {"q", "k", "pe", "w.bias_u", "w.bias_v", "w.relative_k_proj.weight", "mask"},
        {"scores"}},
       parakeet},
      {{"fastspeech2_conformer",
        "transformers 5.23.0 FastSpeech2ConformerAttention.forward",
        "(ac + bd) / sqrt(D)",
        {"masked"},
        {"q", "k", "pe", "w.pos_bias_u", "w.pos_bias_v", "w.linear_pos.weight", "mask"},
        {"scores"}},
       fastspeech2},
      {{"funnel",
        "transformers 5.23.0 FunnelRelMultiheadAttention.forward",
        "queries and biases scaled first; token types; float32",
        {"segments"},
        {"q", "k", "pe", "token_type", "w.r_w_bias", "w.r_r_bias", "w.r_kernel", "w.r_s_bias",
         "w.seg_embed"},
        {"scores"}},
       funnel},
      {{"gemma3n_audio",
        "transformers 5.23.0 Gemma3nAudioRelativePositionEmbedding",
        "blocks of queries; a sinusoid of distances",
        {"left", "right", "chunk", "blocks"},
        {"q", "k", "w.pos_proj.weight"},
        {"scores"}},
       gemma3n_audio},
  };
}

}  // namespace posenc::relative
