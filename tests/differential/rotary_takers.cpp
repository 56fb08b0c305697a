// Every part of posenc that takes the description of a rotary embedding, called with heads that a
// model has recorded.

#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <utility>
#include <vector>

#include "differential/ops.h"
#include "posenc/core/skip_init.h"
#include "posenc/positions/nn/rotary_position_embedding_2d.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/transformer_encoder_layer.h"

namespace posenc::differential {
namespace {

namespace F = posenc::functional;

// What one call is given: heads (B, H, L, D), and positions, which may be undefined.
struct Call {
  const Json& options;
  RotaryOptions rotary;
  at::Tensor q, k, v, ids, cos, sin;

  int64_t tokens() const { return q.size(2); }
  // The positions of some of the tokens.
  at::Tensor ids_of(int64_t begin, int64_t end) const {
    return ids.defined() ? ids.slice(rotary.axial() ? -2 : -1, begin, end) : ids;
  }
};

// Tokens that are rows of the unit matrix, (B, L, E), so that the columns of a projection's weight
// are the heads of each.
at::Tensor tokens_of(const Call& call, int64_t width) {
  const int64_t count = call.q.size(0) * call.tokens();
  TORCH_CHECK(count <= width, "heads of ", width, " channels for ", count, " tokens");
  return torch::eye(count, width).view({call.q.size(0), call.tokens(), width});
}

MultiheadAttention attention_of(const Call& call) {
  const SkipInit skip;
  const int64_t heads = call.q.size(1), width = heads * call.q.size(3);
  MultiheadAttention module(MultiheadAttentionOptions(width, heads)
                                .num_kv_heads(call.k.size(1))
                                .bias(false)
                                .rotary(call.rotary));
  const torch::NoGradGuard no_grad;
  const auto columns = [](const at::Tensor& x) {
    return x.permute({1, 3, 0, 2}).flatten(2).flatten(0, 1);
  };
  const at::Tensor projections =
      torch::cat({columns(call.q), columns(call.k), columns(call.v)});  // (E + 2 Ekv, B L)
  module->in_proj_weight.zero_().slice(1, 0, projections.size(1)).copy_(projections);
  module->out_proj->weight.copy_(torch::eye(width));
  module->eval();
  return module;
}

StateDict named(const char* name, const at::Tensor& tensor) {
  StateDict results;
  results.insert(name, tensor);
  return results;
}

StateDict by_forward(const Call& call) {
  auto attention = attention_of(call);
  const auto x = tokens_of(call, attention->options.embed_dim());
  return named("out", attention->forward(x, x, x, AttentionMask::causal(), call.ids));
}

// A module with the model's own weights: not causal, as vision models are not.
StateDict by_module_of_the_model(const Call& call, const StateDict& tensors) {
  const SkipInit skip;
  const int64_t heads = call.q.size(1);
  MultiheadAttention module(MultiheadAttentionOptions(heads * call.q.size(3), heads)
                                .num_kv_heads(call.k.size(1))
                                .rotary(call.rotary));
  const torch::NoGradGuard no_grad;
  const auto joined = [&](const char* kind) {
    return torch::cat({tensors[std::string("q.") + kind], tensors[std::string("k.") + kind],
                       tensors[std::string("v.") + kind]});
  };
  module->in_proj_weight.copy_(joined("weight"));
  module->in_proj_bias.copy_(joined("bias"));
  module->out_proj->weight.copy_(tensors["o.weight"]);
  module->out_proj->bias.copy_(tensors["o.bias"]);
  module->eval();
  const at::Tensor x = tensors["x"];
  return named("out", module->forward(x, x, x, {}, call.ids));
}

// The last tokens against all, with positions for both.
StateDict by_forward_apart(const Call& call) {
  auto attention = attention_of(call);
  const auto x = tokens_of(call, attention->options.embed_dim());
  const int64_t all = call.tokens(), begin = all / 2;
  const auto ids = [&](int64_t from) {
    return call.ids.defined() ? call.ids_of(from, all) : torch::arange(from, all);
  };
  return named("out", attention->forward(x.slice(1, begin), x, x, AttentionMask::causal(begin),
                                         ids(begin), ids(0)));
}

StateDict by_steps(const Call& call) {
  auto attention = attention_of(call);
  const auto x = tokens_of(call, attention->options.embed_dim());
  auto cache = attention->make_cache(x.size(0), x.size(1));
  std::vector<at::Tensor> pieces;
  int64_t begin = 0;
  for (const int64_t count : call.options.at("steps")) {
    pieces.push_back(attention->step(x.slice(1, begin, begin + count), cache, {},
                                     call.ids_of(begin, begin + count)));
    begin += count;
  }
  pieces.push_back(
      attention->step(x.slice(1, begin), cache, {}, call.ids_of(begin, call.tokens())));
  return named("out", torch::cat(pieces, 1));
}

// A layer whose feed-forward network adds nothing.
StateDict by_encoder_layer(const Call& call) {
  auto attention = attention_of(call);
  const int64_t width = attention->options.embed_dim();
  TransformerEncoderLayer layer(
      TransformerEncoderLayerOptions(width, attention->options.num_heads()).d_ff(4));
  layer->self_attn = layer->replace_module("self_attn", attention);
  const torch::NoGradGuard no_grad;
  layer->linear2->weight.zero_();
  layer->linear2->bias.zero_();
  layer->eval();
  return named("out", layer->forward(tokens_of(call, width), AttentionMask::causal()));
}

// The heads as the system itself has them: an order of axes that `rotate` is given, and that its
// results have.
using Rotate = std::function<F::QueryKey(const at::Tensor& q, const at::Tensor& k)>;
StateDict rotated(const Call& call, const Rotate& rotate) {
  // X-Codec 2 has the heads first, and takes them for positions.
  const bool after = call.rotary.head_axis() == rotary::HeadAxis::AfterLength &&
                     call.rotary.applied_to() != rotary::AppliedTo::HeadsByHead;
  const bool as_one = call.rotary.applied_to() == rotary::AppliedTo::AllHeads;
  const auto turned = [&](const at::Tensor& x) {
    const at::Tensor own = after ? x.transpose(1, 2) : x;
    return as_one ? own.flatten(2).unsqueeze(2) : own.clone();
  };
  const auto back = [&](const at::Tensor& x) {
    const at::Tensor own = as_one ? x.unflatten(3, {-1, call.q.size(3)}).squeeze(2) : x;
    return after ? own.transpose(1, 2) : own;
  };
  const auto [q, k] = rotate(turned(call.q), turned(call.k));
  StateDict results = named("q", back(q));
  results.insert("k", back(k));
  if (call.rotary.rotary_value())
    results.insert("v", back(std::get<0>(rotate(turned(call.v), turned(call.k)))));
  return results;
}

StateDict by_function(const Call& call) {
  return rotated(call, [&](const at::Tensor& q, const at::Tensor& k) {
    return F::rotary(q, k, call.rotary, F::RotaryFuncOptions().position_ids(call.ids));
  });
}

StateDict by_table_in_place(const Call& call) {
  const bool by_head = call.rotary.applied_to() == rotary::AppliedTo::HeadsByHead;
  const auto ids = call.ids.defined() ? call.ids : torch::arange(call.q.size(by_head ? 1 : 2));
  const RotaryCosSin table = rotary_cos_sin(call.rotary, ids, call.q.scalar_type());
  return rotated(call, [&](const at::Tensor& q, const at::Tensor& k) {
    F::rotary_(q, k, table, call.rotary);
    return F::QueryKey(q, k);
  });
}

StateDict by_given_table(const Call& call) {
  return rotated(call, [&](const at::Tensor& q, const at::Tensor& k) {
    return F::rotary(q, k, RotaryCosSin{call.cos, call.sin}, call.rotary);
  });
}

StateDict by_module(const Call& call) {
  RotaryEmbedding module(call.rotary);
  return rotated(call, [&](const at::Tensor& q, const at::Tensor& k) {
    return module->forward(q, k, 0, call.ids);
  });
}

StateDict by_grid(const Call& call) {
  RotaryPositionEmbedding2d module(RotaryPositionEmbedding2dOptions(call.rotary)
                                       .prefix_tokens(call.options.value("prefix_tokens", 0)));
  module->eval();
  const auto size = [&](const char* name) { return call.options.value(name, int64_t{1}); };
  return rotated(call, [&](const at::Tensor& q, const at::Tensor& k) {
    return module->forward(q, k, size("height"), size("width"), size("frames"));
  });
}

StateDict rotary_taker(const Json& options, const StateDict& tensors) {
  static const std::map<std::string, std::function<StateDict(const Call&)>> takers = {
      {"forward", by_forward},   {"forward_apart", by_forward_apart},
      {"step", by_steps},        {"encoder_layer", by_encoder_layer},
      {"function", by_function}, {"in_place", by_table_in_place},
      {"module", by_module},     {"grid", by_grid},
      {"given", by_given_table}};
  const auto of = [&](const char* name) {
    return tensors.contains(name) ? tensors[name] : at::Tensor();
  };
  Call call{options, rotary_options_of(options), of("q"),   of("k"),
            of("v"), of("position_ids"),         of("cos"), of("sin")};
  if (options.contains("xpos_middle"))
    call.rotary.xpos_middle(options.at("xpos_middle").get<int64_t>());
  const std::string taker = options.at("taker");
  return taker == "whole" ? by_module_of_the_model(call, tensors) : takers.at(taker)(call);
}

// cos and sin of the calls of one module whose frequencies are cast: each an object with the number
// of positions, or a dtype that the module is converted to before the next one.
StateDict rotary_calls(const Json& options, const StateDict&) {
  RotaryEmbedding module(
      RotaryEmbeddingOptions(rotary_options_of(options)).casts_frequencies(true));
  StateDict results;
  for (const Json& call : options.at("calls")) {
    if (call.contains("dtype")) {
      module->to(dtype_of(call));
      continue;
    }
    const RotaryCosSin table = module->cos_sin(torch::arange(call.at("rows").get<int64_t>()));
    const std::string number = std::to_string(results.size() / 2);
    results.insert("cos" + number, table.cos);
    results.insert("sin" + number, table.sin);
  }
  return results;
}

}  // namespace

Ops rotary_taker_ops() { return {{"rotary_taker", rotary_taker}, {"rotary_calls", rotary_calls}}; }

}  // namespace posenc::differential
