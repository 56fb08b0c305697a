#include "differential/frozen_edits.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

namespace posenc::differential {
namespace {

constexpr Change kHarmless = {false, false}, kComputes = {false, true}, kRefusable = {true, true};

Activation any_activation(Drawn& drawn) {
  return drawn.any({Activation::ReLU, Activation::GELU, Activation::SiLU, Activation::GELUTanh,
                    Activation::QuickGELU, Activation::Tanh, Activation::LeakyReLU});
}

// Biases and norms begin as zeros and ones, with which an exchange goes unnoticed.
template <typename Holder>
Holder randomised(Holder holder) {
  const torch::NoGradGuard no_grad;
  for (auto& p : holder->parameters()) p.add_(torch::randn_like(p), 0.3);
  holder->eval();
  return holder;
}

// The options of a layer, some of them changed; whether any is that a stack shares.
bool mutate(Drawn& drawn, TransformerLayerOptions& options) {
  const auto before = options;
  if (drawn.coin(0.2)) options.num_heads(drawn.any<int64_t>({1, 2, 4}));
  if (drawn.coin(0.2)) options.d_ff(drawn.between(1, 40));
  if (drawn.coin(0.2)) options.activation(any_activation(drawn));
  if (drawn.coin(0.2)) options.norm_first(drawn.coin());
  if (drawn.coin(0.2)) options.layer_norm_eps(drawn.any({1e-5, 1e-2, 1.0}));
  if (drawn.coin(0.2)) options.bias(drawn.coin());
  if (drawn.coin(0.1)) options.batch_first(drawn.coin());
  if (drawn.coin(0.1)) options.d_model(options.num_heads() * drawn.between(1, 8));
  if (drawn.coin(0.1)) options.layer_scale(0.3);
  return options.num_heads() != before.num_heads() || options.d_model() != before.d_model() ||
         options.norm_first() != before.norm_first() ||
         options.batch_first() != before.batch_first();
}

Change change_linear(Drawn& drawn, torch::nn::Module& parent, const char* name,
                     torch::nn::Linear& linear) {
  const int64_t in = linear->weight.size(1), out = linear->weight.size(0);
  const int64_t to_in = drawn.near(in), to_out = drawn.near(out);
  drawn.did(std::string(name) + " = Linear(" + std::to_string(to_in) + ", " +
            std::to_string(to_out) + ")");
  const auto how = torch::nn::LinearOptions(to_in, to_out).bias(drawn.coin(0.8));
  linear = parent.replace_module(name, randomised(torch::nn::Linear(how)));
  return in == to_in && out == to_out ? kComputes : kRefusable;
}

// A LayerNorm or a TransformerNorm.
template <typename Holder>
Change change_norm(Drawn& drawn, torch::nn::Module& parent, const char* name, Holder& norm) {
  const int64_t width = norm->options.d_model(), to = drawn.near(width);
  const double eps = drawn.any({1e-5, 1e-2, 2.0});
  drawn.did(std::string(name) + ": eps " + std::to_string(eps) + ", width " + std::to_string(to));
  if (drawn.coin()) {
    norm->options.eps(eps);
    return kComputes;
  }
  norm = parent.replace_module(
      name, randomised(Holder(decltype(norm->options)(to).eps(eps).bias(drawn.coin(0.8)))));
  return to == width ? kComputes : kRefusable;
}

Change change_attention(Drawn& drawn, torch::nn::Module& parent, const char* name,
                        MultiheadAttention& attention) {
  const auto& own = attention->options;
  const int64_t heads = drawn.coin() ? own.num_heads() : drawn.any<int64_t>({1, 2, 4});
  drawn.did(std::string(name) + ": heads " + std::to_string(heads));
  if (drawn.coin(0.3)) {
    attention->options.num_heads(heads);
    return kRefusable;
  }
  auto how = MultiheadAttentionOptions(drawn.near(own.embed_dim() / heads) * heads, heads)
                 .bias(drawn.coin(0.7))
                 .batch_first(drawn.coin(0.9) ? own.batch_first() : !own.batch_first());
  if (drawn.coin(0.1)) how.out_bias(drawn.coin());
  if (drawn.coin(0.1)) how.num_kv_heads(1);
  if (drawn.coin(0.1)) how.kdim(drawn.between(1, 20));
  const bool same = heads == own.num_heads() && how.embed_dim() == own.embed_dim() &&
                    how.batch_first() == own.batch_first() &&
                    how.num_kv_heads().value_or(heads) == heads &&
                    how.kdim().value_or(how.embed_dim()) == how.embed_dim();
  attention = parent.replace_module(name, randomised(MultiheadAttention(how)));
  return same ? kComputes : kRefusable;
}

template <typename Layer>
Change change_common(Drawn& drawn, Layer& layer) {
  switch (drawn.below(8)) {
    case 0: return change_linear(drawn, layer, "linear1", layer.linear1);
    case 1: return change_linear(drawn, layer, "linear2", layer.linear2);
    case 2: return change_norm(drawn, layer, "norm1", layer.norm1);
    case 3: return change_norm(drawn, layer, "norm2", layer.norm2);
    case 4: return change_attention(drawn, layer, "self_attn", layer.self_attn);
    case 5:
      drawn.did("out_proj of self_attn");
      return change_linear(drawn, *layer.self_attn, "out_proj", layer.self_attn->out_proj);
    case 6:
      drawn.did("the layer's activation");
      layer.options.activation(any_activation(drawn));
      return kComputes;
    default:
      drawn.did("the layer's norm_first");
      layer.options.norm_first(!layer.options.norm_first());
      return kRefusable;
  }
}

// A ModuleList cannot exchange a module, so it is exchanged itself.
template <typename Layer, typename Stack>
Change change_stack(Drawn& drawn, Stack& stack) {
  auto options = stack.options.layer();
  const int64_t count = static_cast<int64_t>(stack.layers->size());
  const int64_t at = drawn.between(-1, count);  // -1: no layers any more; count: one more
  const bool shared = mutate(drawn, options);
  drawn.did("layer " + std::to_string(at) + " of " + std::to_string(count) + ": heads " +
            std::to_string(options.num_heads()) + ", d_model " + std::to_string(options.d_model()) +
            (options.norm_first() ? ", norm_first" : "") +
            (shared ? ", other than the stack" : ""));
  if (drawn.coin(0.1)) {  // or the stack's own norm
    stack.norm =
        stack.norm ? stack.replace_module("norm", TransformerNorm(drawn.near(options.d_model())))
                   : stack.register_module("norm", TransformerNorm(drawn.near(options.d_model())));
    return kRefusable;
  }
  torch::nn::ModuleList layers;
  for (int64_t i = 0; i <= count && at >= 0; ++i) {
    if (i == at) {
      layers->push_back(randomised(Layer(options)));
    } else if (i < count) {
      layers->push_back(stack.layers->ptr(static_cast<size_t>(i)));
    }
  }
  stack.layers = stack.replace_module("layers", layers);
  return shared || at < 0 || count == 0 ? kRefusable : Change{true, true};
}

Change change_embedding(Drawn& drawn, TransformerImpl& model) {
  const bool source = drawn.coin();
  const char* name = source ? "src_embedding" : "tgt_embedding";
  auto& embedding = source ? model.src_embedding : model.tgt_embedding;
  auto own = any_embedding(drawn, embedding->options.vocab_size(), embedding->options.d_model());
  drawn.did(name);
  switch (drawn.below(4)) {
    case 0:
      embedding->token_embedding->options.max_norm(0.5);
      drawn.did("max_norm");
      return kRefusable;
    case 1:
      embedding->options.scale(own.scale());
      drawn.did("scale");
      return kComputes;
    case 2: own.d_model(drawn.near(own.d_model())); [[fallthrough]];
    default:
      embedding = model.replace_module(name, randomised(TokenAndPositionEmbedding(own)));
      drawn.did("replaced");
      return kRefusable;
  }
}

Change change_transformer(Drawn& drawn, TransformerImpl& model) {
  const auto& how = model.options;
  if (drawn.coin()) return change_embedding(drawn, model);
  switch (drawn.below(4)) {
    case 0: {
      const bool source = drawn.coin();
      drawn.did(source ? "output tied to src_embedding" : "output tied to tgt_embedding");
      model.final_layer->tie((source ? model.src_embedding : model.tgt_embedding)->token_embedding);
      return {how.src_vocab() != how.tgt_vocab(), true};
    }
    case 1:
      drawn.did("another output");
      model.final_layer = model.replace_module(
          "final_layer", randomised(OutputProjection(drawn.near(how.d_model()), how.tgt_vocab())));
      return kRefusable;
    case 2:
      drawn.did("shared tokens");
      model.tgt_embedding->share_tokens(model.src_embedding->token_embedding);
      return {true, true};
    default: {
      auto layer = any_layer(drawn, how.d_model(), how.num_heads());
      mutate(drawn, layer);
      drawn.did("another encoder");
      model.encoder = model.replace_module(
          "encoder", randomised(TransformerEncoder(TransformerEncoderOptions(layer, 1))));
      return kRefusable;
    }
  }
}

Change change_encoder(Drawn& drawn, EncoderImpl& model) {
  const int64_t width = model.options.encoder().layer().d_model();
  switch (drawn.below(3)) {
    case 0:
      if (!model.pooler) return kHarmless;
      return change_linear(drawn, model, "pooler", model.pooler);
    case 1: {
      if (!model.embeddings) return kHarmless;
      drawn.did("other embeddings");
      model.embeddings =
          model.replace_module("embeddings", randomised(EncoderEmbeddings(any_embeddings(
                                                 drawn, model.embeddings->options.vocab_size(),
                                                 drawn.coin(0.8) ? width : drawn.near(width)))));
      return kRefusable;
    }
    default:
      if (!model.embeddings || !model.embeddings->norm) return kHarmless;
      return change_norm(drawn, *model.embeddings, model.embeddings->options.names().norm.c_str(),
                         model.embeddings->norm);
  }
}

Change change_tensor(Drawn& drawn, torch::nn::Module& root) {
  auto parameters = root.named_parameters();
  if (parameters.is_empty()) return kHarmless;
  auto& item =
      parameters[static_cast<size_t>(drawn.below(static_cast<int64_t>(parameters.size())))];
  at::Tensor p = item.value();
  const std::string name = item.key();
  const torch::NoGradGuard no_grad;
  switch (drawn.below(8)) {
    case 0:
      drawn.did(name + " *= 3");
      p.mul_(3.0);
      return kComputes;
    case 1: {
      drawn.did("a NaN in " + name);
      if (p.numel() == 0 || p.scalar_type() != at::kFloat) return kHarmless;
      p.view({-1})[drawn.below(p.numel())].copy_(any_nan(drawn));
      return kComputes;
    }
    case 2:
      drawn.did("set_data of " + name);
      p.set_data(torch::randn_like(p));
      return kComputes;
    case 3:  // the same shape in another order of memory
      if (p.dim() != 2) return kHarmless;
      drawn.did("set_data of strided " + name);
      p.set_data(torch::randn({p.size(1), 2 * p.size(0)}).t().slice(0, 0, 2 * p.size(0), 2));
      return kComputes;
    case 4: {
      for (auto& other : parameters) {
        if (other.key() == name || other.value().sizes() != p.sizes()) continue;
        drawn.did(name + " tied to " + other.key() + " by set_data");
        p.set_data(other.value());
        return kComputes;
      }
      return kHarmless;
    }
    case 5: {
      const auto type = drawn.any({at::kDouble, at::kBFloat16, at::kHalf});
      drawn.did(name + " to " + toString(type));
      p.set_data(p.to(type));
      return kRefusable;
    }
    case 6:
      drawn.did("another shape of " + name);
      p.set_data(torch::randn({drawn.near(p.size(0)), drawn.between(1, 20)}));
      return kRefusable;
    default:
      drawn.did("requires_grad of " + name);
      p.set_requires_grad(false);
      return kHarmless;
  }
}

Change change_whole(Drawn& drawn, torch::nn::Module& root) {
  const auto modules = root.modules();
  auto& part = *modules[static_cast<size_t>(drawn.below(static_cast<int64_t>(modules.size())))];
  switch (drawn.below(4)) {
    case 0:
      drawn.did(part.name() + " to train()");
      part.train();
      return kHarmless;
    case 1:
      drawn.did(part.name() + " to float64");
      part.to(torch::kDouble);
      return kRefusable;
    case 2:
      drawn.did(part.name() + " to float64 and back");
      part.to(torch::kDouble);
      part.to(torch::kFloat);
      return kComputes;
    default:
      drawn.did("zero_grad, to(float32)");
      root.zero_grad();
      root.to(torch::kFloat);
      return kHarmless;
  }
}

}  // namespace

at::Tensor any_nan(Drawn& drawn) {
  const int64_t payload =
      drawn.any<int64_t>({0x7fc00000, 0x7fffffff, 0x7f800001, 0x7fa00000, 0x7fc12345});
  return torch::tensor(payload, torch::kLong).to(torch::kInt).view(torch::kFloat) *
         1.0;  // a product keeps the payload
}

TransformerLayerOptions any_layer(Drawn& drawn, int64_t width, int64_t heads) {
  return TransformerLayerOptions(width, heads)
      .d_ff(drawn.between(1, 40))
      .dropout(drawn.any({0.0, 0.5}))
      .activation(any_activation(drawn))
      .norm_first(drawn.coin())
      .layer_norm_eps(drawn.any({1e-5, 1e-3}))
      .bias(drawn.coin(0.8));
}

EncoderEmbeddingsOptions any_embeddings(Drawn& drawn, int64_t vocab, int64_t width) {
  using embeddings::PositionIds;
  EncoderEmbeddingsOptions how(vocab, width);
  how.position_rows(40).position_ids(drawn.any(
      {PositionIds::None, PositionIds::Arange, PositionIds::FromIds, PositionIds::FromMask}));
  how.norm(drawn.any(
      {embeddings::Norm::None, embeddings::Norm::AfterSum, embeddings::Norm::AfterDropout}));
  if (how.position_ids() == PositionIds::FromMask) how.position_offset(2);
  if (drawn.coin() || how.position_ids() == PositionIds::FromIds) how.padding_idx(drawn.below(3));
  if (drawn.coin()) how.type_vocab_size(2);
  if (drawn.coin()) how.dropout(0.4);
  if (drawn.coin(0.3)) how.scale(Scale::SqrtDim);
  how.layer_norm_eps(drawn.any({1e-12, 1e-5, 1e-2}));
  if (drawn.coin(0.3))
    how.embedding_dim(2 * drawn.between(4, 8)).projection(embeddings::Projection::Last);
  return how;
}

TokenAndPositionEmbeddingOptions any_embedding(Drawn& drawn, int64_t vocab, int64_t width) {
  TokenAndPositionEmbeddingOptions how(vocab, width, 20);
  how.scale(drawn.any({Scale(Scale::None), Scale(Scale::SqrtDim), Scale(0.3)}))
      .batch_first(drawn.coin(0.8));
  how.table_source(drawn.coin(0.8) ? TableSource::Buffer : TableSource::OnTheFly);
  if (drawn.coin(0.3)) how.padding_idx(drawn.below(vocab));
  if (drawn.coin(0.3)) how.sinusoid(SinusoidOptions(width).precision(Precision::Exact).base(100.0));
  return how.dropout(drawn.any({0.0, 0.5})).grow(drawn.coin(0.3));
}

namespace {

Change change_part(Drawn& drawn, torch::nn::Module& root) {
  if (drawn.coin(0.2)) return change_tensor(drawn, root);
  if (drawn.coin(0.1)) return change_whole(drawn, root);
  std::vector<std::shared_ptr<torch::nn::Module>> modules;
  for (const auto& module : root.modules()) {
    if (module->as<TransformerEncoderImpl>() || module->as<TransformerDecoderImpl>() ||
        module->as<TransformerEncoderLayerImpl>() || module->as<TransformerDecoderLayerImpl>() ||
        module->as<TransformerImpl>() || module->as<EncoderImpl>())
      modules.push_back(module);
  }
  auto& part = *modules[static_cast<size_t>(drawn.below(static_cast<int64_t>(modules.size())))];
  drawn.did(part.name().substr(part.name().rfind(':') + 1));
  if (auto* model = part.as<TransformerImpl>()) return change_transformer(drawn, *model);
  if (auto* model = part.as<EncoderImpl>()) return change_encoder(drawn, *model);
  if (auto* stack = part.as<TransformerEncoderImpl>())
    return change_stack<TransformerEncoderLayer>(drawn, *stack);
  if (auto* stack = part.as<TransformerDecoderImpl>())
    return change_stack<TransformerDecoderLayer>(drawn, *stack);
  if (auto* layer = part.as<TransformerEncoderLayerImpl>()) return change_common(drawn, *layer);
  auto& layer = *part.as<TransformerDecoderLayerImpl>();
  if (drawn.coin(0.3))
    return change_attention(drawn, layer, "multihead_attn", layer.multihead_attn);
  return drawn.coin(0.2) ? change_norm(drawn, layer, "norm3", layer.norm3)
                         : change_common(drawn, layer);
}

}  // namespace

Change change_model(Drawn& drawn, torch::nn::Module& root) {
  try {
    return change_part(drawn, root);
  } catch (const c10::Error& error) {
    drawn.did("refused by the module itself");
    return kHarmless;
  }
}

}  // namespace posenc::differential
