// DeBERTa: content to position and position to content.

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sqrt.h>

#include <algorithm>
#include <string>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/index.h"
#include "posenc/positions/relative/scores.h"
#include "posenc/positions/relative/term.h"
#include "positions/relative/masked.h"

namespace posenc::relative {
namespace {

struct Terms {
  bool c2p, p2c;
  int64_t count() const { return 1 + (c2p ? 1 : 0) + (p2c ? 1 : 0); }
};

// The class of DeBERTa v1 scales by the number of words, of any words.
Terms terms_of(const Given& given) {
  const Terms terms = {given.lists("terms", "c2p"), given.lists("terms", "p2c")};
  const int64_t words = given.words("terms");
  given.require(words + 1 == terms.count(), "`terms` must be c2p, p2c, both or none, once each",
                std::to_string(words) + " words");
  return terms;
}

// (L, E) of all heads -> (H, L, D)
at::Tensor of_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), heads, -1}).permute({1, 0, 2});
}

at::Tensor projected(const Given& given, const char* weight, const char* bias,
                     const at::Tensor& table, int64_t width) {
  const at::Tensor matrix = given.tensor(weight, {width, table.size(1)});
  return at::linear(table.unsqueeze(0), matrix, bias ? given.tensor(bias, {width}) : at::Tensor())
      .squeeze(0);
}

// sqrt(D n) in float32.
at::Tensor root(int64_t head_dim, int64_t count) {
  return at::sqrt(at::scalar_tensor(static_cast<double>(head_dim * count), at::kFloat));
}

QueriesAndKeys same_lengths(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  given.require(input.queries == input.keys, "`q` and `k` must have the same length",
                std::to_string(input.queries) + " and " + std::to_string(input.keys));
  return input;
}

at::Tensor masked_scores(const Given& given, const at::Tensor& scores,
                         const QueriesAndKeys& input) {
  const at::Tensor mask =
      given.added("mask", {input.batch, input.heads, input.queries, input.keys});
  return masked(scores, mask.to(at::kBool), fill_lowest());
}

// The rows that are used depend on the length: those of distances that occur.
RelativeOutputs deberta(const Given& given) {
  const QueriesAndKeys input = fused_queries_and_keys(given, Fused::Heads);
  const Terms terms = terms_of(given);
  const int64_t most = given.integer("max_relative", 1), width = input.heads * input.head_dim;
  const int64_t span = std::min(input.queries, most);
  const at::Tensor relative = given.tensor("relative", {2 * most, kAny});
  const at::Tensor table = relative.slice(0, most - span, most + span);
  const at::Tensor scale = root(input.head_dim, terms.count());
  const at::Tensor q = input.q / scale.to(input.q.scalar_type());
  const Clamp index = {span, span - 1, /*query_minus_key=*/true};
  at::Tensor scores = at::matmul(q, input.k.transpose(-1, -2)), term;
  if (terms.c2p) {
    const at::Tensor rows =
        of_heads(projected(given, "w.pos_proj.weight", nullptr, table, width), input.heads);
    term = relative_term(q, rows.unsqueeze(0), input.keys, index);
  }
  if (terms.p2c) {
    at::Tensor rows = of_heads(
        projected(given, "w.pos_q_proj.weight", "w.pos_q_proj.bias", table, width), input.heads);
    // The scale is not rounded to the dtype here.
    rows = (rows / scale).unsqueeze(0);
    const at::Tensor back = relative_term(input.k, rows, input.queries, index, Contract::Key);
    term = term.defined() ? term + back : back;
  }
  if (term.defined()) scores = scores + term;
  return {{"scores", masked_scores(given, scores, input)}};
}

// Parameters of its own, or those of the queries and keys.
RelativeOutputs deberta_v2(const Given& given) {
  const QueriesAndKeys input = same_lengths(given);
  const Terms terms = terms_of(given);
  const int64_t most = given.integer("max_relative", 1), buckets = given.integer("buckets", -1);
  const int64_t width = input.heads * input.head_dim, span = buckets > 0 ? buckets : most;
  const bool shares = given.flag("share_key");
  const at::Tensor table = given.tensor("relative", {2 * span, kAny});
  const at::Tensor scale = root(input.head_dim, terms.count()).to(input.q.scalar_type());
  const Index index = buckets > 0 ? Index(SignedLog{buckets, most})
                                  : Index(Clamp{span, span - 1, /*query_minus_key=*/true});
  const auto rows = [&](const char* weight, const char* bias) {
    return of_heads(projected(given, weight, bias, table, width), input.heads)
        .repeat({input.batch, 1, 1})
        .view({input.batch, input.heads, -1, input.head_dim});
  };
  const at::Tensor q = input.q.contiguous(), k = input.k.contiguous();
  at::Tensor scores = at::matmul(q, k.transpose(-1, -2) / scale), term;
  if (terms.c2p) {
    const at::Tensor keys = shares ? rows("w.key_proj.weight", "w.key_proj.bias")
                                   : rows("w.pos_key_proj.weight", "w.pos_key_proj.bias");
    term = relative_term(q, keys, input.keys, index) / scale;
  }
  if (terms.p2c) {
    const at::Tensor queries = shares ? rows("w.query_proj.weight", "w.query_proj.bias")
                                      : rows("w.pos_query_proj.weight", "w.pos_query_proj.bias");
    const at::Tensor back = relative_term(k, queries, input.queries, index, Contract::Key) / scale;
    term = term.defined() ? term + back : back;
  }
  if (term.defined()) scores = scores + term;
  return {{"scores", masked_scores(given, scores, input)}};
}

PresetRow v2_row(const char* name, const char* source, const char* summary) {
  return {{name,
           source,
           summary,
           {"terms", "max_relative", "buckets", "share_key"},
           {"q", "k", "mask", "relative", "w.query_proj.weight", "w.query_proj.bias",
            "w.key_proj.weight", "w.key_proj.bias", "w.pos_query_proj.weight",
            "w.pos_query_proj.bias", "w.pos_key_proj.weight", "w.pos_key_proj.bias"},
           {"scores"}},
          deberta_v2};
}

}  // namespace

PresetRows deberta_presets() {
  return {
      {{"deberta",
        "transformers 5.23.0 deberta.DisentangledSelfAttention",
        "q / sqrt(D n) once; the rows depend on the length",
        {"terms", "max_relative"},
        {"q", "k", "mask", "relative", "w.pos_q_proj.weight", "w.pos_q_proj.bias",
         "w.pos_proj.weight"},
        {"scores"}},
       deberta},
      v2_row("deberta_v2", "transformers 5.23.0 deberta_v2.DisentangledSelfAttention",
             "k / scale, each term / scale; logarithmic buckets"),
      v2_row("sew_d", "transformers 5.23.0 sew_d.DisentangledSelfAttention", "DeBERTa v2's"),
  };
}

}  // namespace posenc::relative
