// Transformer-XL and its kin: queries times the rows of a projected table, shifted.

#include <ATen/TensorOperators.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/scores.h"
#include "posenc/positions/relative/term.h"
#include "positions/relative/masked.h"

namespace posenc::relative {
namespace {

struct XlNames {
  const char *pe, *linear, *bias_u, *bias_v;
  bool cached = false;  // whether keys of earlier steps may come before those of the queries
};

// What a conformer's attention makes of its queries and its table.
struct XlParts {
  at::Tensor q_u;  // q + u, (B, H, Q, D)
  at::Tensor bd;   // (q + v).r, shifted, (B, H, Q, K)
};

XlParts xl_parts(const Given& given, const QueriesAndKeys& input, const XlNames& names) {
  given.require(names.cached ? input.queries <= input.keys : input.queries == input.keys,
                names.cached ? "`k` must be at least as long as `q`"
                             : "`q` and `k` must have the same length",
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
constexpr XlNames kNemotron = {"pe", "w.relative_k_proj.weight", "w.bias_u", "w.bias_v", true};

RelativeOutputs conformer(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const XlParts parts = xl_parts(given, input, kConformer);
  const Scoring scoring = {ScaleOf::Scores, ScaleBy::Multiply, 1, /*scales_term=*/true};
  return {{"scores",
           relative_scores(parts.q_u, input.k, parts.bd, mask_if_masked(given, input), scoring)}};
}

RelativeOutputs fastspeech2(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const XlParts parts = xl_parts(given, input, kConformer);
  const bool masked = given.flag("masked");
  at::Tensor mask;
  if (masked) mask = given.tensor("mask", {input.batch, 1, input.keys}).unsqueeze(1) != 0;
  const Scoring scoring = {ScaleOf::ScoresAndTerm, ScaleBy::Divide, 1, false, Masking::FillLowest};
  return {{"scores", relative_scores(parts.q_u, input.k, parts.bd, mask, scoring)}};
}

// The mask fills the term, which is added to scores that are not masked themselves: with the lowest
// number in Parakeet, with -inf in Nemotron.
RelativeOutputs parakeet(const Given& given, const XlNames& names) {
  const QueriesAndKeys input = queries_and_keys(given);
  const XlParts parts = xl_parts(given, input, names);
  at::Tensor term = parts.bd * std::pow(static_cast<double>(input.head_dim), -0.5);
  const at::Tensor mask = mask_if_masked(given, input);
  if (mask.defined()) {
    const at::Tensor attends = mask.to(at::kBool);
    term = names.cached
               ? term.masked_fill(attends.logical_not(), -std::numeric_limits<double>::infinity())
               : masked(term, attends, fill_lowest());
  }
  // Keys of earlier steps come from a cache, which has them head by head.
  const at::Tensor k = input.keys > input.queries ? input.k.contiguous() : input.k;
  return {{"scores", relative_scores(parts.q_u, k, term, {}, {})}};
}

PresetRow parakeet_row(const char* name, const char* source, const char* summary,
                       const XlNames& names) {
  return {{name,
           source,
           summary,
           {"masked"},
           {names.pe, "q", "k", names.bias_u, names.bias_v, names.linear, "mask"},
           {"scores"}},
          [=](const Given& given) { return parakeet(given, names); }};
}

// Tokens come before sequences: (L, B, H, D). The shift has no padding, so that the table has a row
// more.
RelativeOutputs xlnet(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const auto tokens_first = [](const at::Tensor& x) {
    return x.permute({2, 0, 1, 3}).contiguous();
  };
  const at::Tensor q = tokens_first(input.q), k = tokens_first(input.k);
  given.require(input.keys == input.queries + given.integer("memory"),
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
    const at::Tensor mask =
        given.added("mask", {input.queries, input.keys, input.batch, input.heads});
    const double far = mask.scalar_type() == at::kHalf ? 65500.0 : 1e30;
    scores = scores - mask.permute({2, 3, 0, 1}) * far;
  }
  return {{"scores", scores}};
}

// What both of Funnel's encodings share: queries and biases are scaled first.
struct FunnelParts {
  QueriesAndKeys input;
  double scale;
  at::Tensor q, kernel;  // (B, Q, H, D) and (E, H, D)

  explicit FunnelParts(const Given& given)
      : input(queries_and_keys(given)),
        scale(1.0 / std::sqrt(static_cast<double>(input.head_dim))),
        q(input.q.transpose(1, 2) * scale),
        kernel(given.tensor("w.r_kernel", {kAny, input.heads, input.head_dim})) {}

  at::Tensor bias(const Given& given, const char* name) const {
    return given.tensor(name, {input.heads, input.head_dim}) * scale;
  }
};

// Token types are a third term. Scores are float32 at last.
RelativeOutputs funnel_scores(const Given& given, const FunnelParts& parts,
                              const at::Tensor& positional) {
  const auto& [input, scale, q, kernel] = parts;
  const at::Tensor k = input.k.transpose(1, 2);
  const at::Tensor content =
      at::einsum("bind,bjnd->bnij", {q + parts.bias(given, "w.r_w_bias"), k});
  at::Tensor scores = content + positional;
  if (given.flag("segments")) {
    const at::Tensor same = given.tensor("token_type", {input.batch, input.queries, input.keys});
    const at::Tensor table = given.tensor("w.seg_embed", {2, input.heads, input.head_dim});
    const at::Tensor types =
        at::einsum("bind,snd->bnis", {q + parts.bias(given, "w.r_s_bias"), table});
    scores = scores + at::where(same.to(at::kBool).unsqueeze(1), types.slice(-1, 1, 2),
                                types.slice(-1, 0, 1));
  } else {
    scores = scores + 0;
  }
  return {{"scores", scores.to(at::kFloat)}};
}

RelativeOutputs funnel(const Given& given) {
  const FunnelParts parts(given);
  const QueriesAndKeys& input = parts.input;
  // A block that pools has half of the queries.
  const int64_t step = input.queries != input.keys ? 2 : 1;
  const int64_t reached = step * input.queries + input.keys;
  const at::Tensor pe = given.tensor("pe", {kAny, parts.kernel.size(0)});
  // The class makes the rows that are reached. Its comment counts one more where the number of keys
  // is even, which it takes as well.
  given.require(pe.size(0) == reached || pe.size(0) == std::max(reached, 2 * input.keys + step - 1),
                "`pe` must have " + std::to_string(reached) +
                    " rows, from the last key of the first query to the first key of the last",
                std::to_string(pe.size(0)));
  const at::Tensor rows = at::einsum("td,dnh->tnh", {pe, parts.kernel});
  const at::Tensor positional =
      at::einsum("binh,tnh->bnit", {parts.q + parts.bias(given, "w.r_r_bias"), rows});
  return funnel_scores(given, parts,
                       relative_shift(positional, input.keys, step * input.queries, step));
}

// By the sine of a sum: a product with the position of the query, and one with that of the key.
RelativeOutputs funnel_factorized(const Given& given) {
  const FunnelParts parts(given);
  const QueriesAndKeys& input = parts.input;
  const int64_t width = parts.kernel.size(0);
  const at::Tensor phi = given.tensor("phi", {input.queries, width});
  const at::Tensor pi = given.tensor("pi", {input.queries, width});
  const at::Tensor psi = given.tensor("psi", {input.keys, width});
  const at::Tensor omega = given.tensor("omega", {input.keys, width});
  const at::Tensor q =
      at::einsum("binh,dnh->bind", {parts.q + parts.bias(given, "w.r_r_bias"), parts.kernel});
  const at::Tensor of_sines = at::einsum("bind,jd->bnij", {q * phi.unsqueeze(1), psi});
  const at::Tensor of_cosines = at::einsum("bind,jd->bnij", {q * pi.unsqueeze(1), omega});
  return funnel_scores(given, parts, of_sines + of_cosines);
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
      parakeet_row("parakeet", "transformers 5.23.0 ParakeetEncoderAttention.forward",
                   "the same; the mask fills the term", kParakeet),
      parakeet_row("nemotron_asr_streaming",
                   "transformers 5.23.0 NemotronAsrStreamingEncoderAttention.forward",
                   "the same with keys of earlier steps; the mask fills the term by -inf",
                   kNemotron),
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
      {{"funnel_factorized",
        "transformers 5.23.0 FunnelRelMultiheadAttention.forward, attention_type factorized",
        "the same by four tables of positions, and no shift",
        {"segments"},
        {"q", "k", "phi", "pi", "psi", "omega", "token_type", "w.r_w_bias", "w.r_r_bias",
         "w.r_kernel", "w.r_s_bias", "w.seg_embed"},
        {"scores"}},
       funnel_factorized},
  };
}

}  // namespace posenc::relative
