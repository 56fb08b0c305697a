// Attention of frozen models with its products in any dtype, for bfloat16.py and int8.py.

#include <torch/types.h>

#include "differential/ops.h"
#include "inference/attention/attention.h"
#include "support/threads.h"

namespace posenc::differential {
namespace {

using inference::AttentionProducts;

// q (B, L, H Dh), k and v (B, S, Hkv Dh)  ->  (B, L, H Dh)
StateDict sequence_attention(const Json& options, const StateDict& tensors) {
  static const std::map<std::string, AttentionProducts> kAll = {
      {"float32", AttentionProducts::Float32},
      {"bfloat16", AttentionProducts::BFloat16},
      {"int8", AttentionProducts::Int8Scores}};
  const testing::Threads threads(options.at("threads").get<int>());
  const auto &q = tensors["q"], &k = tensors["k"];
  const int64_t heads = options.at("heads"), width = q.size(2) / heads;
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
                     .sizes = {heads, k.size(2) / width, width},
                     .scoring = {inference::score_scale(width),
                                 kAll.at(options.at("products").get<std::string>())},
                     .mask = mask},
                    out.data_ptr<float>());
  StateDict results;
  results.insert("out", out);
  return results;
}

}  // namespace

Ops sequence_attention_ops() { return {{"sequence_attention", sequence_attention}}; }

}  // namespace posenc::differential
