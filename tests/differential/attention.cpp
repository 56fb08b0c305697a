// Attention with a rotary embedding and any mask: in one call, and in steps with a cache.

#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/models/rotary_config.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/transformer/attention/multihead_attention.h"

namespace posenc::differential {
namespace {

MultiheadAttention attention_of(const Json& options) {
  const int64_t width = options.at("width"), heads = options.at("heads");
  auto how = MultiheadAttentionOptions(width, heads)
                 .num_kv_heads(options.at("kv_heads").get<int64_t>())
                 .bias(options.at("bias"))
                 .out_bias(options.at("out_bias").get<bool>());
  if (options.contains("config")) {
    how.rotary(rotary_options_from_hf(options.at("config").get<std::string>(),
                                      options.value("layer_type", "")));
  } else if (options.contains("preset")) {
    how.rotary(rotary_preset(options.at("preset").get<std::string>(), width / heads));
  }
  return MultiheadAttention(how);
}

// The rows of queries `begin` to `end` and the keys up to `end` of each tensor of a mask.
StateDict of_step(const Json& options, const StateDict& in, int64_t begin, int64_t end) {
  StateDict part;
  for (const auto& item : in) part.insert(item.key(), item.value());
  if (!options.contains("mask")) return part;
  for (const auto& mask : options.at("mask")) {
    if (!mask.contains("in")) continue;
    at::Tensor& own = part[mask.at("in").get<std::string>()];
    const std::string kind = mask.at("kind");
    const bool of_keys = kind == "padding" || kind.rfind("key_padding", 0) == 0;
    if (!of_keys && own.size(-2) > 1) own = own.narrow(-2, begin, end - begin);
    if (own.size(-1) > 1) own = own.narrow(-1, 0, end);
  }
  return part;
}

at::Tensor in_steps(MultiheadAttention module, const Json& options, const StateDict& in) {
  const at::Tensor x = in["x"],
                   ids = in.contains("position_ids") ? in["position_ids"] : at::Tensor();
  KeyValueCache cache = module->make_cache(x.size(0), x.size(1));
  std::vector<at::Tensor> outs;
  int64_t begin = 0;
  for (const int64_t size : options.at("steps")) {
    const int64_t end = begin + size;
    const auto own = ids.defined() ? ids.narrow(-1, begin, size) : ids;
    outs.push_back(module->step(x.narrow(1, begin, size), cache,
                                mask_of(options, "mask", of_step(options, in, begin, end)), own));
    TORCH_CHECK(!outs.back().requires_grad(), "a step records gradients");
    if (options.value("overflows", false)) {  // an error leaves the cache as it was
      try {
        module->step(torch::cat({x, x}, 1), cache);
        TORCH_CHECK(false, "more tokens than the capacity were not refused");
      } catch (const c10::ValueError&) {
      }
    }
    begin = end;
  }
  return torch::cat(outs, 1);
}

StateDict rotary_attention(const Json& options, const StateDict& tensors) {
  MultiheadAttention module = attention_of(options);
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    if (options.contains("steps")) return in_steps(module, options, in);
    const auto ids = in.contains("position_ids") ? in["position_ids"] : at::Tensor();
    return module->forward(in["x"], in["x"], in["x"], mask_of(options, "mask", in), ids);
  });
}

}  // namespace

Ops attention_ops() { return {{"rotary_attention", rotary_attention}}; }

}  // namespace posenc::differential
