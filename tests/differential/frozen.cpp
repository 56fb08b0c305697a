// Frozen models beside their modules: any model, changed before it is frozen, afterwards, and while
// a search runs.

#include <ATen/Context.h>
#include <torch/utils.h>

#include "differential/frozen_edits.h"
#include "differential/frozen_inputs.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::differential {
namespace {

using Tensors = std::vector<at::Tensor>;
using Found = std::vector<std::vector<Hypothesis>>;

FreezeOptions any_backend(Drawn& drawn) {
  return FreezeOptions().gemm(drawn.any(
      {GemmBackend::Native, GemmBackend::Native, GemmBackend::ATen, GemmBackend::Autotune}));
}

Outcome outcome_of_eval(torch::nn::Module& module, const std::function<Tensors()>& compute) {
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes;
  for (const auto& part : module.modules()) modes.emplace_back(part, part->is_training());
  module.eval();
  const torch::NoGradGuard no_grad;
  auto outcome = outcome_of(compute);
  for (const auto& [part, mode] : modes) {
    if (mode) part->train();
  }
  return outcome;
}

// LibTorch's fused attention makes zeros of scores that are NaN where there are fewer than 16 keys
// and no mask. With a mask, with more keys and in its other kernels they make NaN of a row, as in
// transformers' eager attention and in frozen models.
class WithoutFusedAttention {
 public:
  explicit WithoutFusedAttention(const torch::nn::Module& module)
      : was_used_(at::globalContext().userEnabledFlashSDP()) {
    for (const auto& parameter : module.parameters()) {
      if (parameter.is_floating_point() && parameter.isnan().any().item<bool>())
        at::globalContext().setSDPUseFlash(false);
    }
  }
  ~WithoutFusedAttention() { at::globalContext().setSDPUseFlash(was_used_); }
  WithoutFusedAttention(const WithoutFusedAttention&) = delete;
  WithoutFusedAttention& operator=(const WithoutFusedAttention&) = delete;

 private:
  const bool was_used_;
};

// What is the same for all kinds of models.
template <typename Holder, typename Frozen>
void compare(Drawn& drawn, Holder& model, const std::function<Tensors(Holder&)>& plain,
             const std::function<Tensors(Frozen&)>& frozen) {
  const auto expected_now = [&] {
    const WithoutFusedAttention unfused(*model);
    return outcome_of_eval(*model, [&] { return plain(model); });
  };
  bool may_refuse = false;
  for (int64_t changes = drawn.any<int64_t>({0, 1, 1, 1, 2}); changes > 0; --changes)
    may_refuse |= change_model(drawn, *model).may_refuse;
  const Outcome before = expected_now();
  const auto backend = any_backend(drawn);
  std::optional<Frozen> use;
  const Outcome made = outcome_of([&] { return use.emplace(freeze(model, backend)), Tensors(); });
  if (!use) {
    if (!may_refuse && before.error.empty())
      drawn.fail("freeze() refuses the model: " + made.error);
    return;
  }
  const auto same = [&](const Outcome& got, const Outcome& expected, const std::string& when) {
    if (expected.error.empty() != got.error.empty())
      drawn.fail(when + (got.error.empty() ? "computes, where the module: " + expected.error
                                           : "where the module computes: " + got.error));
    const auto why = difference(got.values, expected.values, kFrozenTolerance);
    if (!why.empty()) drawn.fail(when + why);
  };
  const auto call = [&] { return outcome_of([&] { return frozen(*use); }); };
  const Outcome first = call();
  if (!(may_refuse && first.values.empty())) same(first, before, "frozen: ");
  if (drawn.coin(0.4) || !first.error.empty()) return;
  drawn.did("FROZEN");
  const Change change = change_model(drawn, *model);
  const Outcome later = call(), now = expected_now();
  if (!change.stales) return same(later, first, "after a harmless change: ");
  if (later.error.empty()) same(later, now, "after a change: ");
}

void encoder_case(Drawn& drawn) {
  const int64_t heads = drawn.any<int64_t>({1, 2, 2, 4}), width = heads * drawn.between(2, 9) * 2;
  auto layer = any_layer(drawn, width, heads).batch_first(drawn.coin(0.7));
  auto how = TransformerEncoderOptions(layer, drawn.between(1, 3)).norm(drawn.coin());
  if (drawn.coin(0.2)) how.order({0, 0});
  TransformerEncoder model(how);
  randomise(*model);
  const int64_t batch = drawn.between(0, 4), length = drawn.between(1, 12);
  auto x = torch::randn({batch, length, width});
  if (!layer.batch_first()) x = x.transpose(0, 1);
  const auto mask = any_mask(drawn, batch, heads, length, length, any_tokens(drawn, batch, length));
  const auto kept = [&](const at::Tensor& y) {
    return Tensors{of_tokens(y, mask, layer.batch_first())};
  };
  compare<TransformerEncoder, FrozenTransformerEncoder>(
      drawn, model, [&](auto& m) { return kept(m->forward(x, mask)); },
      [&](auto& m) { return kept(m.forward(x, mask)); });
}

void whole_encoder_case(Drawn& drawn) {
  const int64_t heads = drawn.any<int64_t>({1, 2, 4}), width = heads * drawn.between(2, 6) * 2;
  const auto layers =
      TransformerEncoderOptions(any_layer(drawn, width, heads), drawn.between(1, 2));
  const int64_t batch = drawn.between(1, 3), length = drawn.between(1, 10),
                vocab = drawn.between(4, 30);
  EncoderOptions how(any_embeddings(drawn, vocab, width),
                     TransformerEncoderOptions(layers).norm(drawn.coin()));
  using encoder::Pooling;
  how.pooling(drawn.any({Pooling::None, Pooling::TanhOfFirst, Pooling::First, Pooling::LargestToken,
                         Pooling::LinearOfLast}));
  if (drawn.coin(0.3)) {
    how.encoder().relative(relative::Buckets{.num_buckets = drawn.any<int64_t>({8, 32}),
                                             .spare_rows = drawn.any<int64_t>({0, 3})});
  } else if (drawn.coin(0.3)) {
    how.encoder().alibi(
        relative::Alibi{.slopes = drawn.any({relative::Slopes::Bloom, relative::Slopes::Mpt}),
                        .counts_tokens = drawn.coin()});
  }
  if (drawn.coin(0.2)) how.causal(true);
  Encoder model(how);
  randomise(*model);
  const auto ids = torch::randint(vocab, {batch, length}, torch::kLong);
  EncoderInputs inputs;
  at::Tensor tokens;
  if (drawn.coin(0.7)) inputs.attention_mask(tokens = any_tokens(drawn, batch, length));
  if (how.embeddings()->type_vocab_size() > 0 && drawn.coin())
    inputs.token_type_ids(torch::randint(2, {batch, length}, torch::kLong));
  // A pooled row that is padding is that of a token which attends to the others.
  const auto results = [&](const EncoderOutput& out) {
    auto last = out.last_hidden_state;
    if (tokens.defined()) last = last.masked_fill(tokens.eq(0).unsqueeze(-1), 0.0);
    return Tensors{out.embeddings, last, out.pooled};
  };
  compare<Encoder, FrozenEncoder>(
      drawn, model, [&](auto& m) { return results(m->forward(ids, inputs)); },
      [&](auto& m) { return results(m.forward(ids, inputs)); });
}

Transformer any_transformer(Drawn& drawn) {
  const int64_t heads = drawn.any<int64_t>({1, 2, 2, 4}), width = heads * drawn.between(2, 6) * 2;
  const int64_t vocab = drawn.between(8, 30);
  const auto tying =
      drawn.any({Tying::None, Tying::EncoderDecoder, Tying::DecoderOutput, Tying::ThreeWay});
  TransformerOptions how(vocab,
                         drawn.coin() || tying != Tying::None ? vocab : drawn.between(8, 30));
  how.d_model(width).num_heads(heads).num_encoder_layers(drawn.between(1, 2));
  how.num_decoder_layers(drawn.between(1, 2)).d_ff(drawn.between(1, 40)).max_len(20).tie(tying);
  how.norm_first(drawn.coin()).bias(drawn.coin(0.8)).dropout(0.3);
  how.activation(drawn.any({Activation::ReLU, Activation::GELU, Activation::QuickGELU}));
  if (drawn.coin(0.3)) how.decoder_num_heads(heads * 2 <= 4 ? heads * 2 : 1);
  if (drawn.coin(0.3)) how.final_norm(drawn.coin());
  Transformer model(how);
  randomise(*model);
  return model;
}

void transformer_case(Drawn& drawn) {
  auto model = any_transformer(drawn);
  const auto how = model->options;
  const int64_t batch = drawn.between(1, 3), length = drawn.between(1, 9),
                targets = drawn.between(1, 6);
  const auto type = drawn.any({torch::kLong, torch::kInt});
  const auto src = torch::randint(how.src_vocab(), {batch, length}, type);
  const auto tgt = torch::randint(how.tgt_vocab(), {batch, targets}, type);
  const auto tokens = any_tokens(drawn, batch, length);
  if (drawn.coin(0.05)) src.masked_fill_(tokens.eq(0), how.src_vocab());
  const auto src_mask = any_mask(drawn, batch, how.num_heads(), length, length, tokens);
  const int64_t decoder_heads = how.decoder_num_heads().value_or(how.num_heads());
  const auto tgt_mask = any_mask(drawn, batch, decoder_heads, targets, targets, {});
  const auto memory_mask = any_mask(drawn, batch, decoder_heads, targets, length, tokens);
  compare<Transformer, FrozenTransformer>(
      drawn, model,
      [&](auto& m) {
        const auto memory = of_tokens(m->encode(src, src_mask), src_mask, true);
        return Tensors{memory, m->decode(tgt, memory, tgt_mask, memory_mask)};
      },
      [&](auto& m) {
        const auto memory = m.encode(src, src_mask);
        return Tensors{memory, m.decode(tgt, memory, tgt_mask, memory_mask)};
      });
}

GenerateOptions any_search(Drawn& drawn, int64_t vocab) {
  GenerateOptions how(1, 2);
  how.max_new_tokens(drawn.between(1, 8)).length_penalty(drawn.any({1.0, 0.0, 2.0}));
  how.early_stopping(
      drawn.any({EarlyStopping::Never, EarlyStopping::WhenFull, EarlyStopping::WhenUnlikely}));
  if (drawn.coin()) how.num_beams(drawn.between(2, 3)).num_return_sequences(drawn.between(1, 2));
  if (drawn.coin(0.3)) how.eos_ids({});
  if (drawn.coin(0.3)) how.suppress_tokens({drawn.below(vocab)}).renormalize(drawn.coin());
  return how;
}

// "" if the tokens are equal, or other ones are as likely.
std::string found_difference(const Found& got, const Found& expected) {
  if (got.size() != expected.size()) return "another number of sources";
  for (size_t b = 0; b < got.size(); ++b) {
    if (got[b].size() != expected[b].size()) return "another number of hypotheses";
    for (size_t i = 0; i < got[b].size(); ++i) {
      const double a = got[b][i].score, e = expected[b][i].score;
      if (!(std::abs(a - e) <= 1e-3 * std::max(1.0, std::abs(e)))) {
        return "scores " + std::to_string(a) + " for " + std::to_string(e) + ", tokens " +
               (got[b][i].tokens == expected[b][i].tokens ? "equal" : "differ");
      }
    }
  }
  return "";
}

struct Search {
  Found found;
  std::string error;
};

Search search_of(const std::function<Found()>& run) {
  Search search;
  search.error = outcome_of([&] { return search.found = run(), Tensors(); }).error;
  return search;
}

// A search whose callback does something at one step.
void search_case(Drawn& drawn) {
  auto model = any_transformer(drawn);
  const int64_t vocab = model->options.tgt_vocab();
  const int64_t batch = drawn.between(1, 3), length = drawn.between(1, 8);
  const auto src = torch::randint(model->options.src_vocab(), {batch, length}, torch::kLong);
  AttentionMask mask;
  if (drawn.coin()) mask = AttentionMask::key_padding(any_tokens(drawn, batch, length));
  auto how = any_search(drawn, vocab);
  if (drawn.coin(0.2)) {
    const torch::NoGradGuard no_grad;
    drawn.did("a NaN in the output's bias");
    model->final_layer->bias[drawn.below(vocab)].copy_(any_nan(drawn));
  }
  auto frozen = freeze(model, any_backend(drawn));
  const auto plain = search_of([&] { return generate(model, src, mask, how); });
  const auto first = search_of([&] { return generate(frozen, src, mask, how); });
  const auto same = [&](const Search& got, const Search& expected, const std::string& when) {
    if (got.error.empty() != expected.error.empty())
      drawn.fail(when + "error: " + got.error + " for: " + expected.error);
    const auto why = found_difference(got.found, expected.found);
    if (!why.empty()) drawn.fail(when + why);
  };
  same(first, plain, "frozen search: ");
  if (!plain.error.empty()) return;
  const bool is_frozen = drawn.coin();
  const int64_t step = drawn.between(1, *how.max_new_tokens());
  const int64_t kind = drawn.below(7);
  auto changed = how;
  bool called = false, stopped = false;
  changed.progress([&](const GenerateProgress& progress) {
    const torch::NoGradGuard no_grad;
    if (progress.step != step || called) return true;
    called = true;
    switch (kind) {
      case 0: return !(stopped = true);
      case 1:
        model->final_layer->weight.defined() ? void(model->final_layer->weight.mul_(-2.0))
                                             : void(model->parameters()[0].mul_(-2.0));
        break;
      case 2: {
        auto other = any_transformer(drawn);
        frozen = freeze(other), model = other;
        break;
      }
      case 3:
        changed.max_new_tokens(20).num_return_sequences(5).eos_ids({3, 4}).progress(nullptr);
        break;
      case 4: generate(frozen, src, mask, how), generate(model, src, mask, how); break;
      case 5: model->train(); break;
      default: throw std::runtime_error("of the callback");
    }
    return true;
  });
  drawn.did(std::string(is_frozen ? "frozen" : "plain") + " search with callback " +
            std::to_string(kind) + " at step " + std::to_string(step) + " of " +
            std::to_string(*how.max_new_tokens()));
  const auto got = search_of([&] {
    return is_frozen ? generate(frozen, src, mask, changed) : generate(model, src, mask, changed);
  });
  if (!called || stopped || (kind == 1 && !is_frozen)) return;  // the module itself follows
  if (kind == 6) {
    if (got.error.find("of the callback") == std::string::npos)
      drawn.fail("lost the callback's exception");
    return same(search_of([&] { return generate(frozen, src, mask, how); }), first, "afterwards: ");
  }
  if ((kind == 1 || (kind == 5 && !is_frozen)) && !got.error.empty()) return;
  same(got, first, "callback: ");
}

StateDict frozen(const Json& options, const StateDict&) {
  Drawn drawn(options);
  switch (drawn.below(5)) {
    case 0: encoder_case(drawn); break;
    case 1: whole_encoder_case(drawn); break;
    case 2: transformer_case(drawn); break;
    case 3: padding_case(drawn); break;
    default: search_case(drawn);
  }
  return StateDict();
}

}  // namespace

Ops frozen_ops() { return {{"frozen", frozen}}; }

}  // namespace posenc::differential
