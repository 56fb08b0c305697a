// posenc-budget: what draws the options of decoders, and one case for each way of running them
// FrozenDecoder against Decoder, with random options of the layers: forward() with padding on
// either side, prompts of unequal lengths and tokens one by one, windows, caches of prompts, and
// frequencies that depend on the length.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "models/decoder/parts.h"
#include "models/frozen/decoder_parts.h"
#include "modules/drawn_module.h"
#include "posenc/models/frozen_file.h"
#include "posenc/positions/rotary/rotary_preset.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/temp_dir.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

using inference::FrozenDecoderAccess;
using LayerOptions = TransformerLayerOptions;
using Lists = std::vector<std::vector<int64_t>>;

constexpr int64_t kVocab = 37, kPositions = 60;

// Norms of each head of queries and keys, or of all as one.
void draw_qk_norm(Dice& dice, LayerOptions& layer) {
  layer.qk_norm(dice.coin());
  if (!layer.qk_norm()) return;
  layer.qk_norm_after_rotary(dice.below(4) == 0);
  const bool is_layer = layer.norm_kind() == NormKind::Layer;
  layer.qk_norm_bias(is_layer && dice.coin());
  (is_layer && dice.coin() ? layer.qk_norm_per_head() : layer.qk_norm_whole()) = dice.coin();
}

// What the layers of one stack have in common.
LayerOptions any_layer(Dice& dice) {
  const int64_t kv_heads = 1 + dice.below(2), heads = kv_heads * (1 + dice.below(3));
  const int64_t head_dim = 2 * (1 + dice.below(10));
  LayerOptions layer(dice.coin() ? heads * head_dim : 1 + dice.below(40), heads);
  layer.num_kv_heads(kv_heads)
      .head_dim(head_dim)
      .d_ff(1 + dice.below(40))
      .dropout(0.0)
      .feed_forward(dice.any({FeedForward::Gated, FeedForward::Plain}))
      .activation(dice.any({Activation::SiLU, Activation::GELU, Activation::GELUTanh,
                            Activation::ReLU, Activation::ReLUSquared, Activation::Tanh}))
      .norm_first(dice.below(4) != 0)
      .norm_kind(
          dice.any({NormKind::RMS, NormKind::RMSPlusOne, NormKind::Layer, NormKind::LayerPlusOne}))
      .bias(dice.coin())
      .value_norm(dice.below(6) == 0);
  draw_qk_norm(dice, layer);
  if (dice.below(4) == 0) layer.residual_scale(0.6);
  if (dice.below(4) == 0) layer.attention_scale(0.2);
  if (dice.below(4) == 0) layer.qkv_clip(1.5);
  if (dice.coin()) layer.attention_softcap(3.0);
  if (!layer.norm_first()) return layer;
  switch (dice.below(4)) {
    case 0: layer.parallel(dice.any({Parallel::SharedNorm, Parallel::TwoNorms})); break;
    case 1: layer.residual_of_norm(true); break;
    case 2: layer.post_norms(true).first_norm(dice.coin()).second_norm(layer.first_norm()); break;
    default: layer.norm_affine(dice.coin());
  }
  return layer;
}

// Positions of each kind: rotated, learned, ALiBi, or relative biases.
DecoderOptions any_options(Dice& dice) {
  const LayerOptions shared = any_layer(dice);
  std::vector<LayerOptions> layers(static_cast<std::size_t>(1 + dice.below(3)), shared);
  const int64_t kind = dice.below(4);
  for (LayerOptions& one : layers) {
    if (kind == 0 && dice.below(4) != 0) {
      one.rotary(rotary_preset(dice.any({"llama", "gptj"}), *one.head_dim()));
      if (dice.coin()) one.query_growth(QueryGrowth{0.3, 7});
    }
    if (dice.coin()) one.window(dice.below(20));
  }
  EncoderEmbeddingsOptions tokens(kVocab, shared.d_model());
  tokens.type_vocab_size(0)
      .norm(embeddings::Norm::None)
      .position_ids(kind == 1 ? embeddings::PositionIds::Arange : embeddings::PositionIds::None);
  if (kind == 1) tokens.position_rows(kPositions);
  TransformerEncoderOptions stack(shared, static_cast<int64_t>(layers.size()));
  stack.layers(layers).norm(shared.norm_first());
  if (kind == 2) stack.alibi(relative::Alibi{});
  if (kind == 3) stack.relative(relative::Buckets{});
  DecoderOptions options(EncoderOptions(tokens, stack).causal(true));
  options.tied(dice.coin()).head_bias(dice.coin());
  if (dice.coin()) options.logit_scale(0.3);
  if (dice.coin()) options.logit_softcap(50.0);
  return options;
}

Lists any_prompts(Dice& dice, int64_t count, int64_t longest) {
  Lists prompts;
  for (int64_t i = 0; i < count; ++i) {
    prompts.emplace_back();
    for (int64_t j = dice.below(longest); j >= 0; --j) prompts.back().push_back(dice.below(kVocab));
  }
  return prompts;
}

// The logits (V) after all tokens.
torch::Tensor after(const Decoder& model, const std::vector<int64_t>& tokens) {
  const auto ids = torch::tensor(tokens, torch::kLong).unsqueeze(0);
  return Decoder(model)->forward(ids).logits[0][-1];
}
torch::Tensor after(const FrozenDecoder& model, const std::vector<int64_t>& tokens) {
  return model.forward(torch::tensor(tokens, torch::kLong).unsqueeze(0)).logits[0][-1];
}

// The module in float64.
Decoder exact_of(const Decoder& model) {
  Decoder exact(std::dynamic_pointer_cast<DecoderImpl>(model->clone()));
  exact->to(torch::kDouble);
  exact->eval();
  return exact;
}

// How far logits are from these, in parts of the largest.
double relative_error(const torch::Tensor& logits, const torch::Tensor& exact) {
  return (logits - exact).abs().max().item<double>() /
         std::max(1.0, exact.abs().max().item<double>());
}

// Whether a result is as near to that in float64 as the module's is, which for some of the drawn
// weights is far.
bool as_near(const torch::Tensor& got, const torch::Tensor& of_module, const torch::Tensor& exact) {
  return relative_error(got, exact) <= std::max(1e-5, 4 * relative_error(of_module, exact));
}

SearchPlan plan_for(const FrozenDecoder& model, const Lists& prompts, int64_t rows, int64_t most) {
  auto options = GenerateOptions(0, 0).eos_ids({}).max_new_tokens(most).num_beams(rows);
  return plan_of_prompts(model.options(), options, prompts);
}

std::string title(const Decoder& model) { return c10::str(*model.ptr()); }

TEST(FrozenDecoder, ComputesWhatTheModuleComputes) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 40; ++number) {
    Dice dice(number);
    const auto model = drawn(Decoder(any_options(dice)));
    SCOPED_TRACE(std::to_string(number) + title(model));
    const FrozenDecoder frozen = freeze(model);
    const int64_t batch = 1 + dice.below(4), length = 1 + dice.below(50);
    const auto ids = torch::randint(kVocab, {batch, length}, torch::kLong);
    auto mask = torch::ones({batch, length}, torch::kLong);
    for (int64_t row = 0; row < batch && dice.coin(); ++row) {
      const int64_t dropped = dice.below(length);
      mask[row].narrow(0, dice.coin() ? 0 : length - dropped, dropped).zero_();
    }
    const auto inputs = DecoderInputs().attention_mask(mask).output_hidden_states(true);
    const auto tokens = mask.ne(0);
    const DecoderOutput expected = Decoder(model)->forward(ids, inputs),
                        exact = exact_of(model)->forward(ids, inputs);
    const auto is_near = [&](const torch::Tensor& a, const torch::Tensor& b,
                             const torch::Tensor& c) {
      return as_near(a.index({tokens}), b.index({tokens}), c.index({tokens}));
    };
    torch::Tensor first;
    for (const int threads : {1, 2, 4}) {
      const Threads guard(threads);
      const DecoderOutput got = frozen.forward(ids, inputs);
      if (!first.defined()) first = got.logits;
      EXPECT_TRUE(bit_equal(got.logits, first)) << threads;
      EXPECT_TRUE(is_near(got.logits, expected.logits, exact.logits));
      EXPECT_TRUE(
          is_near(got.last_hidden_state, expected.last_hidden_state, exact.last_hidden_state));
      ASSERT_EQ(got.hidden_states.size(), expected.hidden_states.size());
      for (std::size_t i = 0; i < got.hidden_states.size(); ++i)
        EXPECT_TRUE(
            is_near(got.hidden_states[i], expected.hidden_states[i], exact.hidden_states[i]));
      EXPECT_FALSE(got.last_hidden_state.index({~tokens}).any().item<bool>());
    }
    const auto of_last = DecoderInputs(inputs).last_logits_only(true);
    EXPECT_TRUE(as_near(frozen.forward(ids, of_last).logits,
                        Decoder(model)->forward(ids, of_last).logits,
                        exact_of(model)->forward(ids, of_last).logits));
  }
}

// Steps of rows that are exchanged and removed have the logits of whole sequences.
TEST(FrozenDecoder, StepsAreTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 40; ++number) {
    Dice dice(100 + number);
    const auto model = drawn(Decoder(any_options(dice)));
    SCOPED_TRACE(std::to_string(number) + title(model));
    const FrozenDecoder frozen = freeze(model);
    const auto parts = FrozenDecoderAccess::parts(frozen);
    const Lists prompts = any_prompts(dice, 1 + dice.below(4), 30);
    const int64_t times = 1 + dice.below(3), most = 30;
    const SearchPlan plan = plan_for(frozen, prompts, times, most);
    std::optional<PromptCache> cache;
    if (dice.coin()) cache.emplace(frozen, prompts[0]);
    inference::DecoderSteps steps(*parts, plan,
                                  cache ? FrozenDecoderAccess::parts(*cache) : nullptr);
    Lists rows;
    for (const auto& prompt : prompts) rows.insert(rows.end(), times, prompt);
    const Decoder exact_model = exact_of(model);
    double of_steps = 0, of_whole = 0, of_module = 0;
    auto logits = steps.read_prompts();
    for (int64_t step = 0; step < most; ++step) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto exact = after(exact_model, rows[row]);
        of_steps = std::max(of_steps, relative_error(logits[row], exact));
        of_module = std::max(of_module, relative_error(after(model, rows[row]), exact));
        of_whole = std::max(of_whole, relative_error(after(frozen, rows[row]), exact));
      }
      if (step + 1 == most) break;
      if (dice.coin()) {
        std::vector<int64_t> from(rows.size());
        for (std::size_t row = 0; row < rows.size(); ++row)
          from[row] = static_cast<int64_t>(row) / times * times + dice.below(times);
        if (times == 1 && rows.size() > 1 && dice.below(8) == 0) from.erase(from.begin());
        Lists next;
        for (const int64_t row : from) next.push_back(rows[row]);
        rows = next;
        steps.select(torch::tensor(from, torch::kLong));
      }
      std::vector<int64_t> tokens;
      for (auto& row : rows) {
        tokens.push_back(dice.below(kVocab));
        row.push_back(tokens.back());
      }
      logits = steps.step(torch::tensor(tokens, torch::kLong).unsqueeze(1));
    }
    EXPECT_LE(of_steps, std::max(1e-5, 4 * of_module)) << of_whole;
    EXPECT_LE(of_whole, std::max(1e-5, 4 * of_module)) << of_steps;
  }
}

// But for the roundings of products of few rows.
TEST(FrozenDecoder, APromptInPartsIsTheWholePrompt) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 20; ++number) {
    Dice dice(200 + number);
    const auto model = drawn(Decoder(any_options(dice)));
    SCOPED_TRACE(std::to_string(number) + title(model));
    const FrozenDecoder frozen = freeze(model);
    const auto parts = FrozenDecoderAccess::parts(frozen);
    std::vector<int64_t> ids(58);
    for (int64_t& id : ids) id = dice.below(kVocab);
    torch::Tensor whole;
    for (const int64_t most : {58, 29, 17, 6}) {
      auto cache = parts->make_cache(1, 58);
      std::vector<torch::Tensor> rows;
      inference::append_tokens(
          *parts, cache, {{0, ids.data(), 58}}, inference::Rows::All,
          [&](const auto&, const torch::Tensor& hidden) { rows.push_back(hidden.clone()); }, most);
      const auto all = torch::cat(rows);
      if (!whole.defined()) whole = all;
      EXPECT_TRUE(near(all, whole)) << most;
    }
  }
}

TEST(FrozenDecoder, FindsWhatTheModuleFinds) {
  const torch::NoGradGuard no_grad;
  for (unsigned number = 0; number < 24; ++number) {
    Dice dice(300 + number);
    const auto model = drawn(Decoder(any_options(dice)));
    SCOPED_TRACE(std::to_string(number) + title(model));
    const FrozenDecoder frozen = freeze(model);
    const Lists prompts = any_prompts(dice, 1 + dice.below(4), 20);
    const auto options =
        GenerateOptions(0, 1 + dice.below(3)).max_new_tokens(12).num_beams(1 + 3 * dice.below(2));
    const auto expected = generate(model, prompts, options);
    const PromptCache cache(frozen, {prompts[0].begin(), prompts[0].begin() + 1});
    for (const PromptCache* const one : {static_cast<const PromptCache*>(nullptr), &cache}) {
      const auto found = generate(frozen, prompts, options, one);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i][0].tokens, expected[i][0].tokens);
        EXPECT_NEAR(found[i][0].score, expected[i][0].score, 1e-4);
      }
    }
    const auto scores = score(model, prompts), got = score(frozen, prompts),
               exact = score(exact_of(model), prompts);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      ASSERT_EQ(got[i].size(), prompts[i].size() - 1);
      for (std::size_t j = 0; j < got[i].size(); ++j)
        EXPECT_NEAR(got[i][j], exact[i][j],
                    std::max(1e-4, 4 * std::abs(scores[i][j] - exact[i][j])));
    }
  }
}

// LongRoPE and dynamic NTK: each row by its own length, alone and in a batch.
TEST(FrozenDecoder, LengthsOfRowsDecideTheirFrequencies) {
  const torch::NoGradGuard no_grad;
  const rotary::Scaling scalings[] = {
      rotary::LongRope{std::vector<double>(4, 1.0), {1.5, 2.0, 3.0, 4.0}, 12.0, 2.0},
      rotary::Dynamic{4.0, 12}};
  for (const bool is_long : {true, false}) {
    SCOPED_TRACE(is_long);
    auto rotary = rotary_preset("llama", 8).scaling(scalings[is_long ? 0 : 1]);
    const auto layer = LayerOptions(16, 2).d_ff(9).dropout(0.0).norm_first(true).rotary(rotary);
    const DecoderOptions options =
        DecoderOptions(EncoderOptions(EncoderEmbeddingsOptions(kVocab, 16)
                                          .type_vocab_size(0)
                                          .norm(embeddings::Norm::None)
                                          .position_ids(embeddings::PositionIds::None),
                                      TransformerEncoderOptions(layer, 2).norm(true))
                           .causal(true))
            .restart_length(is_long ? std::optional<int64_t>(13) : std::nullopt);
    const auto model = drawn(Decoder(options));
    const FrozenDecoder frozen = freeze(model);
    Dice dice(1);
    const Lists prompts = {any_prompts(dice, 1, 1)[0], std::vector<int64_t>(10, 3),
                           std::vector<int64_t>(15, 5)};
    const auto search = GenerateOptions(0, 0).eos_ids({}).max_new_tokens(9);
    const auto together = generate(frozen, prompts, search),
               of_module = generate(model, prompts, search);
    const PromptCache cache(frozen, std::vector<int64_t>(9, 3));
    const auto with_cache = generate(frozen, prompts, search, &cache);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(together[i][0].tokens, generate(frozen, {prompts[i]}, search)[0][0].tokens) << i;
      EXPECT_EQ(together[i][0].tokens, of_module[i][0].tokens) << i;
      EXPECT_EQ(together[i][0].tokens, with_cache[i][0].tokens) << i;
      if (!is_long) continue;
      auto tokens = prompts[i];  // each token follows the whole sequence
      for (const int64_t token : together[i][0].tokens) {
        EXPECT_EQ(after(model, tokens).argmax().item<int64_t>(), token) << i;
        tokens.push_back(token);
      }
    }
  }
}

// A row of a batch has the bits that it has alone where products do not depend on the batch.
TEST(FrozenDecoder, RowsIn8BitsDoNotDependOnTheBatch) {
  const torch::NoGradGuard no_grad;
  for (const WeightDtype dtype : {WeightDtype::Int8, WeightDtype::BFloat16}) {
    Dice dice(5);
    const auto model = drawn(Decoder(any_options(dice)));
    const FrozenDecoder frozen =
        freeze(model, FreezeOptions().weights(dtype).compute(dtype == WeightDtype::BFloat16
                                                                 ? ComputeDtype::BFloat16
                                                                 : ComputeDtype::Float32));
    const Lists prompts = any_prompts(dice, 6, 20);
    const auto options = GenerateOptions(0, 0).eos_ids({}).max_new_tokens(8);
    const auto together = generate(frozen, prompts, options);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const auto alone = generate(frozen, {prompts[i]}, options);
      EXPECT_EQ(together[i][0].tokens, alone[0][0].tokens);
      EXPECT_EQ(together[i][0].score, alone[0][0].score);
    }
  }
}

TEST(FrozenDecoder, NoticesThatItsSourceHasChanged) {
  const torch::NoGradGuard no_grad;
  for (const char* const part : {"lm_head", "model.encoder.layers.0.linear1"}) {
    Dice dice(7);
    const auto model = drawn(Decoder(any_options(dice).tied(false)));
    const FrozenDecoder frozen = freeze(model);
    const auto ids = torch::zeros({1, 3}, torch::kLong);
    frozen.forward(ids);
    model->named_parameters()[std::string(part) + ".weight"].add_(1.0);
    EXPECT_ERROR(frozen.forward(ids), c10::Error, std::string(part).substr(part[0] == 'm' ? 6 : 0));
    EXPECT_ERROR(generate(frozen, {{1}}, GenerateOptions(0, 0).max_new_tokens(2)), c10::Error,
                 "weight");
  }
}

TEST(FrozenDecoder, RefusesWhatItCannotCompute) {
  Dice dice(9);
  const auto model = drawn(Decoder(any_options(dice))), other = drawn(Decoder(any_options(dice)));
  const FrozenDecoder frozen = freeze(model);
  const PromptCache cache(freeze(other), {1});
  const auto search = GenerateOptions(0, 0).max_new_tokens(2);
  EXPECT_ERROR(generate(frozen, {{1, 2}}, search, &cache), c10::ValueError,
               "cache must be of the model");
  EXPECT_ERROR(generate(frozen, {{1}}, GenerateOptions(search).coverage_penalty(0.5)),
               c10::ValueError,
               "[generate] coverage_penalty must be its default for a model "
               "without an encoder. Got 0.5");
  EXPECT_ERROR(PromptCache(frozen, {}), c10::ValueError, "tokens must not be empty");
  EXPECT_ERROR(PromptCache(frozen, {kVocab}), c10::IndexError, "37");
  EXPECT_ERROR(frozen.forward(torch::full({1, 2}, kVocab)), c10::ValueError, "[FrozenDecoder] ids");
  EXPECT_ERROR(score(frozen, {{}}), c10::ValueError, "text 0 must have a token");
}

TEST(FrozenDecoder, IsSavedAndLoaded) {
  const torch::NoGradGuard no_grad;
  const TempDir folder;
  for (const WeightDtype dtype : {WeightDtype::Float32, WeightDtype::Int8, WeightDtype::BFloat16}) {
    for (unsigned number = 0; number < 6; ++number) {
      Dice dice(400 + number);
      const auto model = drawn(Decoder(any_options(dice)));
      SCOPED_TRACE(title(model));
      const FrozenDecoder frozen = freeze(model, FreezeOptions().weights(dtype));
      const auto path = folder / "model.safetensors";
      save_frozen(frozen, path);
      const FrozenDecoder loaded = load_frozen_decoder(path);
      const auto ids = torch::randint(kVocab, {2, 20}, torch::kLong);
      EXPECT_TRUE(bit_equal(loaded.forward(ids).logits, frozen.forward(ids).logits));
    }
  }
}

}  // namespace
}  // namespace posenc::testing
