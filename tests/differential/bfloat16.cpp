// Single layers and attentions that compute in bfloat16, for bfloat16.py.

#include <torch/types.h>

#include "differential/packed_layer.h"
#include "inference/attention/attention.h"
#include "support/threads.h"

namespace posenc::differential {
namespace {

// q (B, L, H Dh), k and v (B, S, H Dh)  ->  (B, L, H Dh)
StateDict bfloat16_attention(const Json& options, const StateDict& tensors) {
  const testing::Threads threads(options.at("threads").get<int>());
  const auto &q = tensors["q"], &k = tensors["k"];
  const int64_t heads = options.at("heads"), width = q.size(2);
  const inference::Packing queries(q.size(0), q.size(1)), keys(k.size(0), k.size(1));
  ScoreMask mask;
  mask.is_causal = options.at("causal").get<bool>();
  if (tensors.contains("bias")) mask.bias = tensors["bias"];
  const auto out = torch::empty_like(q);
  inference::attend({.query = q.flatten(0, 1),
                     .key = k.flatten(0, 1),
                     .value = tensors["v"].flatten(0, 1),
                     .queries = queries,
                     .keys = keys,
                     .sizes = {heads, heads, width / heads},
                     .scoring = {inference::score_scale(width / heads), ComputeDtype::BFloat16},
                     .mask = mask},
                    out.data_ptr<float>());
  StateDict results;
  results.insert("out", out);
  return results;
}

}  // namespace

Ops bfloat16_ops() {
  return {{"bfloat16_layer", packed_layer<inference::PackedBFloat16Weight>},
          {"bfloat16_attention", bfloat16_attention}};
}

}  // namespace posenc::differential
