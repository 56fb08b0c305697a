// Terms whose rows, or positions, are made of the content, and those that a network makes.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <string>
#include <vector>

#include "catalogue/relative/rows.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/index.h"

namespace posenc::relative {
namespace {

// Each token's state mixes profiles of a bias over the distance.
RelativeOutputs inkling(const Given& given) {
  const int64_t extent = given.integer("extent", 1), keys = given.integer("keys"),
                offset = given.integer("offset");
  const int64_t mixed = given.integer("d_rel", 1);
  const at::Tensor states =
      given.tensor("relative", {kAny, kAny, given.integer("heads", 1), mixed});
  const at::Tensor profiles =
      at::matmul(states, given.tensor("w.proj", {mixed, extent})).transpose(1, 2);
  const at::Tensor distances = at::arange(offset, offset + states.size(1), at::kLong).unsqueeze(1) -
                               at::arange(keys, at::kLong).unsqueeze(0);
  std::vector<int64_t> sizes = profiles.sizes().vec();
  sizes.back() = keys;
  const at::Tensor bias = at::gather(profiles, -1, distances.clamp(0, extent - 1).expand(sizes));
  return {{"bias", bias.masked_fill((distances < 0).logical_or(distances >= extent), 0.0)}};
}

// The queries, keys and states of one of ProphetNet's streams: those of the tokens, or of those
// that are predicted some tokens ahead.
at::Tensor stream_of(const at::Tensor& x, int64_t dim, int64_t stream, int64_t length) {
  return x.slice(dim, stream * length, (stream + 1) * length);
}

// Each token's state makes the entries of all buckets. A stream that predicts attends to the
// tokens, and to its own.
RelativeOutputs prophetnet(const Given& given) {
  const QueriesAndKeys input = queries_and_keys(given);
  const int64_t streams = given.integer("ngram", 1), batch = input.batch, heads = input.heads;
  given.require(input.queries == input.keys && input.queries % (streams + 1) == 0,
                "`q` and `k` must have the same tokens of each of " + std::to_string(streams + 1) +
                    " streams",
                std::to_string(input.queries) + " and " + std::to_string(input.keys));
  const int64_t length = input.queries / (streams + 1);
  const Buckets buckets{given.integer("num_buckets"), given.integer("max_distance"), false, true};
  const at::Tensor hidden = given.tensor("hidden", {batch, input.queries, kAny});
  const at::Tensor positions = given.integers("positions", {batch, length});
  const at::Tensor weight = given.tensor("w.relative_pos_embeddings.weight",
                                         {buckets.num_buckets * heads, hidden.size(2)});
  const at::Tensor bias =
      given.tensor("w.relative_pos_embeddings.bias", {buckets.num_buckets * heads});
  const at::Tensor q = (input.q / std::sqrt(static_cast<double>(input.head_dim))).contiguous();
  const at::Tensor k = input.k.contiguous();
  const at::Tensor own = stream_of(k, 2, 0, length);
  const at::Tensor entries = at::linear(stream_of(hidden, 1, 0, length), weight, bias)
                                 .view({batch, length, buckets.num_buckets, heads})
                                 .permute({0, 3, 1, 2});
  const at::Tensor index = relative_index(positions, positions, buckets).unsqueeze(1);
  at::Tensor scores =
      at::einsum("bntc,bncs->bnts", {stream_of(q, 2, 0, length), own.transpose(2, 3)}) +
      at::gather(entries, 3, index.expand({batch, heads, length, length}));

  std::vector<at::Tensor> queries, keys, states;
  for (int64_t i = 1; i <= streams; ++i) {
    queries.push_back(stream_of(q, 2, i, length));
    keys.push_back(at::cat({own, stream_of(k, 2, i, length)}, 2));
    states.push_back(stream_of(hidden, 1, i, length));
  }
  const at::Tensor both = at::cat({positions - 1, positions}, -1);
  // A linear layer rounds once more where its input is a view such as this one. The class takes the
  // rows of (B, L, streams, H) for those of (streams, B, H, L), as its checkpoints were trained.
  const at::Tensor rows = at::linear(at::stack(states, 2).transpose(1, 2), weight, bias)
                              .view({batch, streams, length, buckets.num_buckets, heads})
                              .permute({0, 2, 1, 4, 3})
                              .reshape({-1, buckets.num_buckets});
  const at::Tensor of_rows = relative_index(positions, both, buckets)
                                 .unsqueeze(0)
                                 .repeat({streams, 1, heads, 1})
                                 .view({-1, 2 * length});
  at::Tensor ahead = at::einsum("bnhtc,bnhsc->bnhts", {at::stack(queries, 1), at::stack(keys, 1)}) +
                     at::gather(rows, 1, of_rows).view({batch, streams, heads, length, 2 * length});
  if (given.flag("masked")) {
    scores = scores + given.added("mask", {batch, heads, length, length});
    ahead = ahead + given.added("predict_mask", {batch, heads, streams, length, 2 * length})
                        .permute({0, 2, 1, 3, 4})
                        .to(ahead.scalar_type());
  }
  return {{"scores", scores}, {"predict_scores", ahead}};
}

// ALiBi whose distances are sums of gates.
RelativeOutputs forget(const Given& given) {
  const bool causal = given.flag("causal");
  const int64_t heads = given.integer("heads", 1), gates = heads * (causal ? 1 : 2);
  const at::Tensor hidden = given.of_rank("hidden", 3);
  const at::Tensor weight = given.tensor("w.to_forget_gates.0.weight", {gates, hidden.size(2)});
  const at::Tensor bias = given.tensor("w.to_forget_gates.0.bias", {gates});
  const at::Tensor sums =
      at::log_sigmoid(at::linear(hidden, weight, bias).permute({0, 2, 1})).cumsum(-1);
  const at::Tensor forward = sums.slice(1, 0, heads);
  const at::Tensor before = forward.unsqueeze(-1) - forward.unsqueeze(-2);
  if (causal) return {{"bias", before}};
  const at::Tensor backward = sums.slice(1, heads);
  const at::Tensor after = backward.unsqueeze(-2) - backward.unsqueeze(-1);
  return {{"bias", before.tril() + after.triu()}};
}

// The same, with a gate for each pair of tokens, of small queries and keys of their own.
RelativeOutputs forget_by_row(const Given& given) {
  const int64_t heads = given.integer("heads", 1), width = given.integer("dim_head", 1);
  const at::Tensor hidden = given.of_rank("hidden", 3);
  const at::Tensor weight =
      given.tensor("w.to_forget_gates.0.weight", {2 * heads * width, hidden.size(2)});
  const at::Tensor both = at::linear(hidden, weight)
                              .view({hidden.size(0), hidden.size(1), 2, heads, width})
                              .permute({2, 0, 3, 1, 4});
  const at::Tensor products = at::einsum("...id,...jd->...ij", {both[0], both[1]}) *
                              std::pow(static_cast<double>(width), -0.5);
  const at::Tensor pairs = at::ones({hidden.size(1), hidden.size(1)}, at::kBool);
  const at::Tensor gates = at::log_sigmoid(products).masked_fill(pairs.triu(), 0.0);
  return {{"bias", gates.flip(-1).cumsum(-1).flip(-1)}};
}

// Each token mixes the rows of a bank of biases over the distance to tokens before it.
RelativeOutputs mixed(const Given& given) {
  const int64_t heads = given.integer("heads", 1), rows = given.integer("num_distance_basis", 1),
                most = given.integer("max_dist", 1), keys = given.integer("keys");
  const at::Tensor hidden = given.of_rank("hidden", 3);
  const int64_t queries = hidden.size(1);
  given.require(keys >= queries, "`keys` must be at least the tokens of `hidden`",
                std::to_string(keys));
  const at::Tensor weight =
      given.tensor("w.to_distance_weights.0.weight", {heads * rows, hidden.size(2)});
  const at::Tensor bias = given.tensor("w.to_distance_weights.0.bias", {heads * rows});
  const at::Tensor shares = at::linear(hidden, weight, bias)
                                .view({hidden.size(0), queries, heads, rows})
                                .permute({0, 2, 1, 3});
  const at::Tensor curves =
      at::einsum("bhnd,dr->bhnr", {shares, given.tensor("w.distance_bank", {rows, most})});
  const at::Tensor distances = at::arange(keys - queries, keys, at::kLong).unsqueeze(1) -
                               at::arange(keys, at::kLong).unsqueeze(0);
  const at::Tensor index =
      distances.clamp(0, most - 1).expand({hidden.size(0), heads, queries, keys});
  const at::Tensor outside = (distances < 0).logical_or(distances >= most);
  return {{"bias", curves.gather(-1, index).masked_fill(outside, 0.0)}};
}

// The position of a key is the sum of the gates between it and the query, a real number.
RelativeOutputs cope(const Given& given) {
  const int64_t most = given.integer("max_pos", 1);
  const at::Tensor q = given.of_rank("q", 4);
  const at::Tensor logits = given.tensor("logits", {q.size(0), q.size(1), q.size(2), kAny});
  const at::Tensor table = given.tensor("w.pos_emb", {most, q.size(3)});
  const at::Tensor positions = at::sigmoid(logits).flip(-1).cumsum(-1).flip(-1).clamp_max(most - 1);
  const at::Tensor scores = at::einsum("bhnd,pd->bhnp", {q, table});
  const at::Tensor above = positions.ceil().to(at::kLong), below = positions.floor().to(at::kLong);
  const at::Tensor share = positions - below;
  return {{"bias",
           at::gather(scores, -1, above) * share + at::gather(scores, -1, below) * (1 - share)}};
}

// A network makes a bias of each distance.
RelativeOutputs dynamic(const Given& given) {
  const int64_t width = given.integer("width", 1), depth = given.integer("depth", 1);
  const int64_t heads = given.integer("heads", 1), queries = given.integer("queries", 1),
                keys = given.integer("keys", 1);
  given.require(given.dtype() == at::kFloat, "`dtype` must be float32", given.text("dtype"));
  given.require(keys >= queries, "`keys` must be at least `queries`", std::to_string(keys));
  at::Tensor x = at::arange(1 - keys, keys, at::kLong).to(at::kFloat).unsqueeze(-1);
  if (given.flag("log_distance")) x = at::sign(x) * at::log(x.abs() + 1);
  const auto layer = [&](const std::string& name, int64_t out) {
    const std::string key = "w.mlp." + name;
    const at::Tensor weight = given.tensor((key + "weight").c_str(), {out, x.size(-1)});
    return at::linear(x, weight, given.tensor((key + "bias").c_str(), {out}));
  };
  for (int64_t i = 0; i < depth; ++i) x = at::silu(layer(std::to_string(i) + ".0.", width));
  x = layer(std::to_string(depth) + ".", heads);
  const at::Tensor index = at::arange(keys - queries, keys, at::kLong).unsqueeze(1) -
                           at::arange(keys, at::kLong).unsqueeze(0) + (keys - 1);
  return {{"bias", relative_bias_of_indices(x, index)}};
}

PresetRow inkling_row(const char* name, const char* source) {
  return {{name,
           source,
           "each token mixes profiles; zero outside the extent",
           {"d_rel", "extent", "offset", "heads", "keys"},
           {"relative", "w.proj"},
           {"bias"}},
          inkling};
}

}  // namespace

PresetRows content_presets() {
  return {
      {{"x_transformers_dynamic",
        "x-transformers 2.31.10 DynamicPositionBias",
        "a network of the distance",
        {"width", "depth", "log_distance", "heads", "queries", "keys", "dtype"},
        {"w.mlp.*"},
        {"bias"}},
       dynamic},
      {{"x_transformers_forget",
        "x-transformers 2.31.10 DataDependentAlibi",
        "sums of gates of the hidden state",
        {"causal", "heads"},
        {"hidden", "w.to_forget_gates.0.weight", "w.to_forget_gates.0.bias"},
        {"bias"}},
       forget},
      {{"x_transformers_forget_by_row",
        "x-transformers 2.31.10 PerRowDataDependentAlibi",
        "sums of gates of each pair of tokens",
        {"heads", "dim_head"},
        {"hidden", "w.to_forget_gates.0.weight"},
        {"bias"}},
       forget_by_row},
      {{"x_transformers_mixed",
        "x-transformers 2.31.10 RelativeProjPositionalBias",
        "each token mixes curves of the distance; zero outside of them",
        {"heads", "num_distance_basis", "max_dist", "keys"},
        {"hidden", "w.to_distance_weights.0.weight", "w.to_distance_weights.0.bias",
         "w.distance_bank"},
        {"bias"}},
       mixed},
      {{"cope",
        "x-transformers 2.31.10 CoPE",
        "positions are sums of gates of the scores",
        {"max_pos"},
        {"q", "k", "logits", "w.pos_emb"},
        {"bias"}},
       cope},
      inkling_row("inkling", "transformers 5.23.0 InklingRelativeLogits"),
      inkling_row("inkling2", "transformers 5.23.0 Inkling2RelativeLogits"),
      {{"prophetnet",
        "transformers 5.23.0 ProphetNetNgramSelfAttention.forward",
        "each token makes the entries of all buckets; + mask",
        {"ngram", "num_buckets", "max_distance", "masked"},
        {"q", "k", "hidden", "positions", "w.relative_pos_embeddings.weight",
         "w.relative_pos_embeddings.bias", "mask", "predict_mask"},
        {"scores", "predict_scores"}},
       prophetnet},
  };
}

}  // namespace posenc::relative
