// Terms whose rows, or positions, are made of the content, and those that a network makes.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/silu.h>

#include <string>

#include "posenc/relative/bias.h"
#include "relative/presets/rows.h"

namespace posenc::relative {
namespace {

// Each token's state mixes profiles of a bias over the distance.
RelativeOutputs inkling(const Given& given) {
  const int64_t extent = given.whole("extent", 1), keys = given.whole("keys"),
                offset = given.whole("offset");
  const int64_t mixed = given.whole("d_rel", 1);
  const at::Tensor states = given.tensor("relative", {kAny, kAny, given.whole("heads", 1), mixed});
  const at::Tensor profiles =
      at::matmul(states, given.tensor("w.proj", {mixed, extent})).transpose(1, 2);
  const at::Tensor distances = at::arange(offset, offset + states.size(1), at::kLong).unsqueeze(1) -
                               at::arange(keys, at::kLong).unsqueeze(0);
  std::vector<int64_t> sizes = profiles.sizes().vec();
  sizes.back() = keys;
  const at::Tensor bias = at::gather(profiles, -1, distances.clamp(0, extent - 1).expand(sizes));
  return {{"bias", bias.masked_fill((distances < 0).logical_or(distances >= extent), 0.0)}};
}

// ALiBi whose distances are sums of gates.
RelativeOutputs forget(const Given& given) {
  const bool causal = given.flag("causal");
  const int64_t heads = given.whole("heads", 1), gates = heads * (causal ? 1 : 2);
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

// The position of a key is the sum of the gates between it and the query, a real number.
RelativeOutputs cope(const Given& given) {
  const int64_t most = given.whole("max_pos", 1);
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
  const int64_t width = given.whole("width", 1), depth = given.whole("depth", 1);
  const int64_t heads = given.whole("heads", 1), queries = given.whole("queries", 1),
                keys = given.whole("keys", 1);
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
      {{"cope",
        "x-transformers 2.31.10 CoPE",
        "positions are sums of gates of the scores",
        {"max_pos"},
        {"q", "k", "logits", "w.pos_emb"},
        {"bias"}},
       cope},
      {{"inkling",
        "transformers 5.23.0 InklingRelativeLogits",
        "each token mixes profiles; zero outside the extent",
        {"d_rel", "extent", "offset", "heads", "keys"},
        {"relative", "w.proj"},
        {"bias"}},
       inkling},
  };
}

}  // namespace posenc::relative
