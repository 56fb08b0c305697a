// Embeddings, dropout modules, pooling and gradients, beside LibTorch's operations.

#include <torch/nn/functional/embedding.h>
#include <torch/nn/functional/normalization.h>
#include <torch/utils.h>

#include "differential/frozen_edits.h"
#include "posenc/models/functional/pooling.h"
#include "posenc/positions/functional/fourier_features.h"
#include "posenc/positions/functional/rotary.h"
#include "posenc/positions/functional/sinusoidal_timesteps.h"
#include "posenc/positions/nn/input_embedding.h"
#include "posenc/positions/nn/sinusoidal_timesteps.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "posenc/positions/sinusoid/table.h"

namespace posenc::differential {
namespace {

using Tensors = std::vector<at::Tensor>;

std::vector<at::Tensor> gradients_of(torch::nn::Module& module, const at::Tensor& out,
                                     const at::Tensor& cotangent) {
  module.zero_grad();
  (out * cotangent).sum().backward();
  Tensors found;
  for (const auto& p : module.parameters()) {
    const auto grad = p.grad();
    found.push_back(grad.defined() ? grad.clone() : at::zeros_like(p));
  }
  return found;
}

at::Tensor embeddings_positions(const EncoderEmbeddingsImpl& embeddings, const at::Tensor& ids,
                                const at::Tensor& tokens) {
  using embeddings::PositionIds;
  const auto& how = embeddings.options;
  switch (how.position_ids()) {
    case PositionIds::FromIds: {
      const auto real = ids.ne(*how.padding_idx()).to(torch::kLong);
      return real.cumsum(1) * real + *how.padding_idx();
    }
    case PositionIds::FromMask: {
      const auto real = tokens.defined() ? tokens.ne(0).to(torch::kLong) : torch::ones_like(ids);
      return real.cumsum(1) * real - 1 + how.position_offset();
    }
    default: return torch::arange(ids.size(1)).expand(ids.sizes());
  }
}

// What BertEmbeddings and similar classes do.
at::Tensor composed(EncoderEmbeddingsImpl& embeddings, const at::Tensor& ids,
                    const at::Tensor& types, const at::Tensor& tokens) {
  namespace F = torch::nn::functional;
  const auto& how = embeddings.options;
  const auto look = [](const at::Tensor& table, const at::Tensor& at,
                       std::optional<int64_t> padding) {
    F::EmbeddingFuncOptions options;
    if (padding) options.padding_idx(*padding);
    return F::embedding(at, table, options);
  };
  const double factor = how.scale().factor(embeddings.tokens->weight.size(1));
  auto x = look(embeddings.tokens->weight, ids, how.padding_idx()) * factor;
  if (embeddings.token_types)
    x = x +
        look(embeddings.token_types->weight, types.defined() ? types : torch::zeros_like(ids), {});
  if (embeddings.positions)
    x = x + look(embeddings.positions->weight, embeddings_positions(embeddings, ids, tokens), {});
  const auto norm = [&] {
    x = F::layer_norm(x, F::LayerNormFuncOptions({x.size(-1)})
                             .weight(embeddings.norm->weight)
                             .bias(embeddings.norm->bias)
                             .eps(how.layer_norm_eps()));
  };
  if (how.norm() == embeddings::Norm::AfterSum) norm();
  x = at::dropout(x, how.dropout(), embeddings.dropout->is_training());
  if (how.norm() == embeddings::Norm::AfterDropout) norm();
  return embeddings.projection
             ? at::linear(x, embeddings.projection->weight, embeddings.projection->bias)
             : x;
}

void embeddings_case(Drawn& drawn) {
  const int64_t vocab = drawn.between(4, 30), batch = drawn.between(1, 4),
                length = drawn.between(1, 12);
  EncoderEmbeddings embeddings(any_embeddings(drawn, vocab, 2 * drawn.between(4, 12)));
  const torch::Tensor ids = torch::randint(vocab, {batch, length}, torch::kLong);
  EncoderEmbeddingsInputs inputs;
  at::Tensor tokens, types;
  if (embeddings->options.position_ids() == embeddings::PositionIds::FromMask && drawn.coin())
    inputs.attention_mask(tokens = (torch::rand({batch, length}) < 0.7).to(torch::kLong));
  if (embeddings->token_types && drawn.coin())
    inputs.token_type_ids(types = torch::randint(2, {batch, length}, torch::kLong));
  for (int64_t steps = drawn.between(1, 4); steps > 0; --steps) {
    const bool on = drawn.coin();
    if (drawn.coin())
      drawn.did(on ? "train()" : "eval()"), embeddings->train(on);
    else
      drawn.did(on ? "dropout->train()" : "dropout->eval()"), embeddings->dropout->train(on);
    if (drawn.coin(0.2)) drawn.did("float64"), embeddings->to(torch::kDouble);
    if (drawn.coin(0.2))
      drawn.did("clone"),
          embeddings = EncoderEmbeddings(
              std::dynamic_pointer_cast<EncoderEmbeddingsImpl>(embeddings->clone()));
    const int64_t seed = drawn.below(1 << 30);
    torch::manual_seed(seed);
    const auto got = embeddings->forward(ids, inputs);
    torch::manual_seed(seed);
    const auto expected = composed(*embeddings, ids, types, tokens);
    auto why = difference(got, expected, 1e-5);
    if (!why.empty()) drawn.fail("embeddings: " + why);
    const auto cotangent = torch::randn_like(got);
    why = difference(gradients_of(*embeddings, got, cotangent),
                     gradients_of(*embeddings, expected, cotangent), 1e-4);
    if (!why.empty()) drawn.fail("gradient of the embeddings' parameter: " + why);
  }
}

// A Dropout module in train mode drops, and one in eval mode does not, whatever the mode of others.
void dropout_case(Drawn& drawn) {
  const int64_t heads = 2, width = 16, length = 5, vocab = 11;
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor()> run;
  const auto x = torch::randn({3, length, width});
  const auto ids = torch::randint(3, vocab, {3, length}, torch::kLong);
  auto layer = any_layer(drawn, width, heads).dropout(0.5).d_ff(32);
  switch (drawn.below(6)) {
    case 0: {
      TransformerEncoder made(TransformerEncoderOptions(layer, 2));
      module = made.ptr(), run = [=]() mutable { return made->forward(x); };
      break;
    }
    case 1: {
      TransformerDecoderLayer made(layer);
      module = made.ptr(), run = [=]() mutable { return made->forward(x, x); };
      break;
    }
    case 2: {
      Transformer made(TransformerOptions(vocab, vocab)
                           .d_model(width)
                           .num_heads(2)
                           .num_encoder_layers(1)
                           .num_decoder_layers(1)
                           .d_ff(32)
                           .dropout(0.5));
      module = made.ptr(), run = [=]() mutable { return made->forward(ids, ids); };
      break;
    }
    case 3: {
      Encoder made(EncoderOptions(any_embeddings(drawn, vocab, width).dropout(0.5),
                                  TransformerEncoderOptions(layer, 1)));
      module = made.ptr(), run = [=]() mutable { return made->forward(ids).last_hidden_state; };
      break;
    }
    case 4: {
      InputEmbedding made(InputEmbeddingOptions(vocab, width, 9).dropout(0.5));
      module = made.ptr(), run = [=]() mutable { return made->forward(ids); };
      break;
    }
    default: {
      TokenAndPositionEmbedding made(
          TokenAndPositionEmbeddingOptions(vocab, width, 9).dropout(0.5));
      module = made.ptr(), run = [=]() mutable { return made->forward(ids); };
    }
  }
  std::vector<torch::nn::Module*> dropouts;
  for (const auto& part : module->modules()) {
    const auto* dropout = part->as<torch::nn::DropoutImpl>();
    if (dropout && dropout->options.p() > 0) dropouts.push_back(part.get());
    if (auto* embedding = part->as<torch::nn::EmbeddingImpl>()) {  // else a ReLU may see zeros only
      const torch::NoGradGuard no_grad;
      embedding->weight.copy_(torch::randn_like(embedding->weight));
    }
  }
  module->eval();
  const torch::NoGradGuard no_grad;
  const auto plain = run();
  const int64_t which = drawn.below(static_cast<int64_t>(dropouts.size()));
  drawn.did(module->name() + ", dropout " + std::to_string(which) + " of " +
            std::to_string(dropouts.size()));
  dropouts[static_cast<size_t>(which)]->train();
  bool drops = false;
  for (int i = 0; i < 8 && !drops; ++i) drops = !at::equal(run(), plain);
  if (!drops) drawn.fail("a Dropout in train mode does nothing");
  module->train();  // attention has no module for its own dropout and follows its mode
  for (const auto& part : module->modules()) {
    if (part->as<MultiheadAttentionImpl>() || part->as<torch::nn::DropoutImpl>()) part->eval();
  }
  if (!difference(run(), plain, 1e-6).empty()) drawn.fail("a Dropout in eval mode drops");
}

void pooling_case(Drawn& drawn) {
  const auto type = drawn.any({at::kFloat, at::kHalf, at::kBFloat16, at::kDouble});
  const int64_t batch = drawn.between(1, 3), length = drawn.any<int64_t>({1, 7, 600, 9000}),
                width = drawn.between(1, 5);
  const double size = drawn.any({0.01, 1.0, 12.0, 150.0}), middle = drawn.coin() ? size : 0.0;
  auto hidden = (torch::randn({batch, length, width}) * size * 0.3 + middle).to(type);
  at::Tensor mask;
  if (drawn.coin(0.7))
    mask = (torch::rand({batch, length}) < drawn.any({0.0, 0.5, 1.0}))
               .to(drawn.any({at::kBool, at::kLong, at::kInt}));
  if (mask.defined() && drawn.coin(0.2))
    hidden =
        hidden.masked_fill(mask.eq(0).unsqueeze(-1), drawn.any({double(NAN), double(INFINITY)}));
  drawn.did(std::string(toString(type)) + ", length " + std::to_string(length) + ", size " +
            std::to_string(size) + (mask.defined() ? ", mask" : ""));
  auto kept =
      mask.defined() ? mask.ne(0).unsqueeze(-1) : torch::ones({batch, length, 1}, torch::kBool);
  const auto expected = hidden.to(torch::kDouble).masked_fill(~kept, 0.0).sum(1) /
                        kept.sum(1).clamp_min(1).to(torch::kDouble);
  const double eps = type == at::kFloat    ? 1e-6
                     : type == at::kDouble ? 1e-13
                     : type == at::kHalf   ? 2e-3
                                           : 1.6e-2;
  // Beside the size of the terms: a mean of random signs is small.
  const auto got = functional::mean_pool(hidden, mask).to(torch::kDouble);
  if (!((got - expected).abs() <= eps * (size * 2)).all().item<bool>())
    drawn.fail("mean_pool off by " + std::to_string((got - expected).abs().max().item<double>()));
}

SinusoidOptions any_sinusoid(Drawn& drawn, int64_t width) {
  SinusoidOptions how(width);
  how.base(drawn.any({10000.0, 20.0})).cos_first(drawn.coin(0.3));
  const auto some = [&](double probability, const char* name) {
    const bool chosen = drawn.coin(probability);
    if (chosen) drawn.did(name);
    return chosen;
  };
  if (some(0.4, "exact")) how.precision(Precision::Exact);
  if (some(0.2, "zero_row")) how.zero_row(0);
  if (some(0.2, "start")) how.start(0.5);
  if (some(0.2, "step")) how.step(0.25);
  if (some(0.3, "halves")) how.layout(sinusoid::Layout::Halves);
  if (some(0.2, "raw_first")) how.raw_first(true);
  // By a power of the base; p / f of the default f would be p * base, too steep for a quotient of
  // differences.
  if (some(0.2, "quotient"))
    how.phase(sinusoid::Phase::Quotient).frequency(sinusoid::Frequency::Power);
  if (some(0.2, "angle_scale")) how.angle_scale(0.5);
  return how;
}

// Of an input that asks for a gradient comes one, with the right values, or an error.
void gradient_case(Drawn& drawn) {
  const int64_t width = 2 * drawn.between(1, 6), n = drawn.between(1, 5);
  at::Tensor input = (torch::rand({n}) * 5.0 + 0.3);
  std::function<at::Tensor(const at::Tensor&)> compute;
  const int64_t kind = drawn.below(7);
  drawn.did("gradient " + std::to_string(kind));
  const auto sinusoid = any_sinusoid(drawn, width);
  if (kind == 0) {
    compute = [&](const at::Tensor& t) { return functional::timestep_rows(t, sinusoid); };
  } else if (kind == 1) {
    SinusoidalTimesteps module(SinusoidalTimestepsOptions(width, 6).sinusoid(sinusoid));
    compute = [=](const at::Tensor& t) mutable { return module->forward(t); };
  } else if (kind == 2) {
    compute = [&](const at::Tensor& t) { return sinusoid_rows(sinusoid, t); };
  } else if (kind == 3) {
    const bool logs = drawn.coin(), own = drawn.coin();
    input = torch::rand({n, 2});
    compute = [=](const at::Tensor& t) {
      return functional::fourier_features(
          t, functional::FourierFeaturesFuncOptions(2, 3).log_sampling(logs).include_input(own));
    };
  } else if (kind == 4) {
    input = torch::randn({8, 3});
    compute = [=](const at::Tensor& t) {
      return relative_position_bias(t, n, n + 1, relative::Buckets{});
    };
  } else if (kind == 5) {
    auto rotary = rotary_preset(drawn.any<const char*>({"llama", "gptj", "llama4"}), width);
    if (drawn.coin(0.3)) rotary.precision(Precision::Exact);
    input = torch::rand({width / 2});
    compute = [=](const at::Tensor& t) {
      const auto table = rotary_cos_sin(rotary, RotaryFrequencies{t}, torch::arange(n));
      return torch::cat({table.cos, table.sin}, -1);
    };
  } else {
    const auto type = drawn.coin() ? torch::kFloat : torch::kDouble;
    input = torch::randn({2, n, width}).to(type);
    const auto mask = torch::rand({2, n}) < 0.6;
    const bool masks = drawn.coin(), unit = drawn.coin();
    compute = [=](const at::Tensor& t) {
      const auto mean = functional::mean_pool(t, masks ? mask : at::Tensor());
      return unit ? functional::l2_normalize(mean) : mean;
    };
  }
  auto leaf = input.clone().requires_grad_();
  at::Tensor out;
  const auto got = outcome_of([&] { return out = compute(leaf), Tensors(); });
  if (!got.error.empty()) return;  // a refusal by name
  if (!out.requires_grad()) drawn.fail("the input asks for a gradient and gets none");
  const auto cotangent = torch::randn_like(out);
  (out * cotangent).sum().backward();
  if (!leaf.grad().defined()) drawn.fail("no gradient has arrived");
  const torch::NoGradGuard no_grad;
  const auto direction = torch::randn_like(input);
  const double h = 1e-2;
  const auto at = [&](double s) {
    return (compute(input + direction * s).to(torch::kDouble) * cotangent).sum().item<double>();
  };
  const double slope = (8 * (at(h / 2) - at(-h / 2)) - (at(h) - at(-h))) / (6 * h);
  const double given = (leaf.grad().to(torch::kDouble) * direction).sum().item<double>();
  const double size = cotangent.abs().sum().item<double>() * direction.abs().max().item<double>();
  if (!(std::abs(slope - given) <= 2e-2 * size + 1e-3))
    drawn.fail("gradient " + std::to_string(given) + " for a slope of " + std::to_string(slope));
}

}  // namespace

void part_case(Drawn& drawn) {
  switch (drawn.below(4)) {
    case 0: return embeddings_case(drawn);
    case 1: return dropout_case(drawn);
    case 2: return pooling_case(drawn);
    default: return gradient_case(drawn);
  }
}

}  // namespace posenc::differential
