// posenc-budget: one class, of modules and of frozen models
// Sources that are encoded once: each result is that of a call which encodes them itself, for
// modules and frozen models.

#include "posenc/inference/encoded_sources.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "inference/models.h"
#include "posenc/inference/score.h"
#include "support/search_reference.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

using Lists = std::vector<std::vector<int64_t>>;
using torch::Tensor;

const Tensor kNone;

// Models whose decoders find the place of a token in different ways.
std::vector<Transformer> models_of(Dice& dice, unsigned seed) {
  std::vector<Transformer> models = {any_model(dice, seed)};
  const auto options = [&] {
    return TransformerOptions(40, 40).d_model(12).num_heads(2).d_ff(20).max_len(64).tie(
        Tying::ThreeWay);
  };
  const auto of_layers = [](TransformerOptions all) {
    return all.num_encoder_layers(1).num_decoder_layers(2);
  };
  for (const auto& one :
       {of_layers(options()).learned_positions(true).position_offset(2),
        of_layers(options()).position_ids(embeddings::PositionIds::FromIds).padding_idx(kPad),
        of_layers(options())
            .position_ids(embeddings::PositionIds::None)
            .relative(relative::Buckets{})
            .decoder_relative(relative::Buckets{.bidirectional = false})
            .norm_first(true),
        of_layers(options()).alibi(relative::Alibi{})}) {
    models.emplace_back(one);
    models.back()->eval();
  }
  return models;
}

Lists any_targets(Dice& dice, int64_t count, int64_t most = 9) {
  Lists targets;
  for (int64_t i = 0; i < count; ++i) {
    targets.push_back({kBegin});
    for (int64_t more = dice(0, most - 1); more > 0; --more) targets.back().push_back(dice(3, 19));
  }
  return targets;
}

// Calls `check` with what the module, and what it frozen, has encoded.
template <typename Check>
void with_both(const Transformer& model, const Tensor& src, const AttentionMask& mask,
               const Check& check) {
  check(encode_sources(model, src, mask));
  check(encode_sources(freeze(model), src, mask));
}

std::vector<AttentionMask> masks_of(const Tensor& src, int64_t heads) {
  const int64_t rows = src.size(0), length = src.size(1);
  return {{},
          AttentionMask::padding(src, kPad),
          AttentionMask::additive(torch::randn({rows, heads, 1, length})),
          AttentionMask::padding(src, kPad) &
              AttentionMask::additive(torch::randn({rows, 1, 1, length}))};
}

// Counts results that are the same up to rounding, and others, of which a tie may be the reason.
struct Tally {
  int64_t same = 0, others = 0;

  void add(const Hypothesis& got, const Hypothesis& expected) {
    const bool is_same =
        got.tokens == expected.tokens &&
        std::abs(got.score - expected.score) <= 1e-5 * std::max(1.0, std::abs(expected.score));
    ++(is_same ? same : others);
  }
  ~Tally() {
    EXPECT_GT(same, 100);
    EXPECT_LE(others, same / 200);
  }
};

std::vector<GenerateOptions> searches_of(Dice& dice) {
  const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(dice(1, 9));
  return {options, GenerateOptions(options).num_beams(3).num_return_sequences(2),
          GenerateOptions(options).eos_ids({kEnd, 4, 9}).return_log_probability(true)};
}

TEST(EncodedSources, FindWhatGenerateFinds) {
  Dice dice(1);
  for (unsigned seed = 0; seed < 6; ++seed) {
    for (const auto& model : models_of(dice, seed)) {
      const auto src = any_ids(dice, dice(1, 5), dice(1, 9), true);
      const auto mask = AttentionMask::padding(src, kPad);
      // In 8 bits the order of sums, which differs, changes nothing.
      const auto frozen = freeze(model, FreezeOptions().weights(WeightDtype::Int8));
      const auto own = encode_sources(model, src, mask), fast = encode_sources(frozen, src, mask);
      for (int turn = 0; turn < 2; ++turn) {
        for (const auto& options : searches_of(dice)) {
          expect_bit_equal(own.generate(options), generate(model, src, mask, options));
          expect_bit_equal(fast.generate(options), generate(frozen, src, mask, options));
        }
      }
    }
  }
}

TEST(EncodedSources, SelectedOnesFindWhatTheyFindThere) {
  Dice dice(2);
  Tally tally;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto model = any_model(dice, seed);
    const auto src = any_ids(dice, 5, dice(1, 9), true);
    const auto heads = common_heads(model->options);
    const auto prefixes = any_targets(dice, 5, 4);
    for (const auto& mask : masks_of(src, heads)) {
      with_both(model, src, mask, [&](const EncodedSources& all) {
        const std::vector<int64_t> chosen = {3, 0, 3, 4};
        const auto some = all.select({4, 3, 0}).select({1, 2, 1, 0});
        EXPECT_EQ(some.size(), 4);
        Lists own;
        for (const int64_t source : chosen) own.push_back(prefixes[source]);
        const auto few = some.generate(
            GenerateOptions(kBegin, kEnd).max_new_tokens(6).num_beams(2).prefixes(own));
        auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(6).num_beams(2);
        const auto many = all.generate(options.prefixes(prefixes));
        for (size_t i = 0; i < chosen.size(); ++i) tally.add(few[i][0], many[chosen[i]][0]);
      });
    }
  }
}

TEST(EncodedSources, NextLogitsAreTheDecoders) {
  Dice dice(3);
  for (unsigned seed = 0; seed < 6; ++seed) {
    for (const auto& model : models_of(dice, seed)) {
      const auto src = any_ids(dice, dice(1, 6), dice(1, 9), true);
      const int64_t heads = common_heads(model->options);
      const auto targets = any_targets(dice, src.size(0));
      for (const auto& mask : masks_of(src, heads)) {
        with_both(model, src, mask, [&](const EncodedSources& sources) {
          const auto got = sources.next_logits(targets);
          for (int64_t b = 0; b < src.size(0); ++b) {
            const auto logits = [&](TransformerImpl& of, torch::Dtype) {
              const auto tgt = torch::tensor(targets[b]).unsqueeze(0).expand({src.size(0), -1});
              return of.forward(src, tgt, mask, AttentionMask::causal())[b][-1];
            };
            EXPECT_TRUE(computes(got[b], model, logits)) << b;
          }
        });
      }
    }
  }
}

TEST(EncodedSources, AttentionIsThatOfEachHead) {
  Dice dice(4);
  for (unsigned seed = 0; seed < 6; ++seed) {
    for (const auto& model : models_of(dice, seed)) {
      const auto src = any_ids(dice, dice(1, 4), dice(1, 9), true);
      const int64_t layers = model->options.num_decoder_layers();
      const int64_t heads = model->decoder->options.layer().num_heads();
      const auto targets = any_targets(dice, src.size(0));
      std::vector<LayerHead> wanted;
      for (int64_t i = dice(1, 4); i > 0; --i)
        wanted.push_back({.layer = dice(0, layers - 1), .head = dice(0, heads - 1)});
      for (const auto& mask : masks_of(src, common_heads(model->options))) {
        with_both(model, src, mask, [&](const EncodedSources& sources) {
          const auto got = sources.attention(targets, wanted);
          for (int64_t b = 0; b < src.size(0); ++b) {
            const auto weights = [&](TransformerImpl& of, torch::Dtype) {
              const auto tgt = torch::tensor(targets[b]).unsqueeze(0).expand({src.size(0), -1});
              const auto memory = of.encode(src, mask);
              auto cache = of.start(memory, tgt.size(1), mask);
              std::vector<Tensor> all, chosen;
              of.decoder->step(of.tgt_embedding->forward(tgt), cache, nullptr, &all);
              for (const auto& [layer, head] : wanted) chosen.push_back(all[layer][b][head]);
              return torch::stack(chosen);
            };
            ASSERT_EQ(got[b].size(1), static_cast<int64_t>(targets[b].size()));
            EXPECT_TRUE(computes(got[b], model, weights)) << b;
          }
        });
      }
    }
  }
}

// Prefixes of different lengths, which a frozen model reads at once, and a module token by token.
TEST(EncodedSources, PrefixesMayHaveAnyLength) {
  Dice dice(5);
  Tally tally;
  for (unsigned seed = 0; seed < 8; ++seed) {
    for (const auto& model : models_of(dice, seed)) {
      const auto src = any_ids(dice, dice(1, 6), dice(1, 9), true);
      const auto mask = AttentionMask::padding(src, kPad);
      auto options = GenerateOptions(kBegin, kEnd)
                         .eos_ids({})
                         .max_new_tokens(4)
                         .suppress_tokens({kPad})
                         .prefixes(any_targets(dice, src.size(0)))
                         .num_beams(dice(1, 3));
      if (model->options.position_ids() == embeddings::PositionIds::FromIds)
        options.hidden_columns(std::vector<int64_t>(src.size(0), dice(0, 2)));
      const auto got = generate(freeze(model), src, mask, options),
                 expected = generate(model, src, mask, options);
      // Which a frozen model does not read at once.
      const auto beside =
          generate(freeze(model), src, mask, GenerateOptions(options).return_attention(true));
      for (size_t b = 0; b < got.size(); ++b) {
        tally.add(got[b][0], expected[b][0]);
        tally.add(got[b][0], beside[b][0]);
      }
    }
  }
}

TEST(EncodedSources, DrawWithAGeneratorOfTheirOwn) {
  Dice dice(6);
  const auto model = any_model(dice, 6);
  const auto src = any_ids(dice, 4, 6, false);
  const auto generators = [](const std::vector<uint64_t>& seeds) {
    std::vector<at::Generator> all;
    for (const uint64_t seed : seeds) all.push_back(at::detail::createCPUGenerator(seed));
    return all;
  };
  const auto options = GenerateOptions(kBegin, kEnd)
                           .max_new_tokens(9)
                           .do_sample(true)
                           .top_p(0.9)
                           .num_return_sequences(2)
                           .prefixes({{kBegin}, {kBegin, 5, 6}, {kBegin, 7}, {kBegin}});
  with_both(model, src, {}, [&](const EncodedSources& sources) {
    const auto all =
        sources.generate(GenerateOptions(options).generators(generators({10, 11, 12, 13})));
    for (int64_t source = 0; source < 4; ++source) {
      const auto alone = sources.select({source}).generate(
          GenerateOptions(options)
              .prefixes({options.prefixes()[source]})
              .generators(generators({10 + static_cast<uint64_t>(source)})));
      for (size_t i = 0; i < 2; ++i) EXPECT_EQ(alone[0][i].tokens, all[source][i].tokens);
    }
    const auto other =
        sources.generate(GenerateOptions(options).generators(generators({20, 11, 12, 13})));
    EXPECT_NE(other[0][0].tokens, all[0][0].tokens);
    EXPECT_EQ(other[1][0].tokens, all[1][0].tokens);
  });
  EXPECT_ERROR(generate(model, src, GenerateOptions(options).generators(generators({1}))),
               c10::ValueError, "generators must have one for each of the 4 sources. Got 1");
}

// The log_softmax of what the settings left of the logits.
double choices_of(const EncodedSources& sources, const GenerateOptions& options,
                  const Hypothesis& found) {
  double sum = 0.0;
  std::vector<int64_t> target = {kBegin};
  for (const int64_t token : found.tokens) {
    auto logits = sources.next_logits({target})[0].to(torch::kDouble);
    for (const int64_t one : options.suppress_tokens())
      logits[one] = -std::numeric_limits<double>::infinity();
    if (options.do_sample()) {
      const auto least = std::get<0>(logits.topk(options.top_k()))[-1];
      logits = logits.masked_fill(logits < least, -std::numeric_limits<double>::infinity());
    }
    sum += logits.log_softmax(0)[token].item<double>();
    target.push_back(token);
  }
  return sum;
}

TEST(EncodedSources, LogProbabilityIsAmongTheChoices) {
  Dice dice(7);
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto model = any_model(dice, seed);
    const auto src = any_ids(dice, 1, 6, false);
    with_both(model, src, {}, [&](const EncodedSources& sources) {
      const auto options = GenerateOptions(kBegin, kEnd)
                               .max_new_tokens(7)
                               .suppress_tokens({3, 4, 5, 6, 7})
                               .return_log_probability(true);
      for (const auto& one :
           {options, GenerateOptions(options).num_beams(3).num_return_sequences(3),
            GenerateOptions(options).do_sample(true).temperature(0.3).top_k(4)}) {
        const Found all = sources.generate(one);
        for (const auto& found : all[0]) {
          EXPECT_NEAR(found.log_probability, choices_of(sources, one, found), 1e-4);
          EXPECT_LT(found.log_probability, 0.0);
        }
        const Found without = sources.generate(GenerateOptions(one).return_log_probability(false));
        EXPECT_EQ(without[0][0].log_probability, 0.0);
      }
    });
  }
}

// The results of a source alone and in a batch, which has more rows than the kernels for few rows
// take.
TEST(EncodedSources, AreIndependentOfEachOther) {
  Dice dice(8);
  const auto of_weights = [](WeightDtype dtype) { return FreezeOptions().weights(dtype); };
  for (unsigned seed = 0; seed < 5; ++seed) {
    for (const auto& model : models_of(dice, seed)) {
      for (const auto dtype : {WeightDtype::Int8, WeightDtype::Float32, WeightDtype::BFloat16}) {
        constexpr int64_t kSources = 11, kLeastTokens = 9;  // more than few, in the encoder too
        const auto frozen = freeze(model, of_weights(dtype));
        const auto src = any_ids(dice, kSources, 12, true);
        src.narrow(1, 0, kLeastTokens).clamp_min_(3);
        const auto mask = AttentionMask::padding(src, kPad);
        const auto all = encode_sources(frozen, src, mask);
        const auto prefixes = any_targets(dice, kSources);
        for (const int64_t beams : {1, 3}) {
          auto options = GenerateOptions(kBegin, kEnd)
                             .max_new_tokens(6)
                             .num_beams(beams)
                             .return_log_probability(true);
          const auto together = all.generate(GenerateOptions(options).prefixes(prefixes));
          for (int64_t b = 0; b < kSources; ++b) {
            const auto own = src.narrow(0, b, 1);
            const auto alone =
                generate(frozen, own, AttentionMask::padding(own, kPad),
                         GenerateOptions(options).prefixes({prefixes[b]}).max_new_tokens(6));
            expect_bit_equal(alone, {together[b]});
            expect_bit_equal(
                all.select({b}).generate(GenerateOptions(options).prefixes({prefixes[b]})),
                {together[b]});
          }
        }
      }
    }
  }
}

// Sources without ids, from which generate() and EncodedSources find the same.
TEST(EncodedSources, MayBeFeatures) {
  const auto model = tiny_model(tiny_hearing());
  const auto src = tiny_sounds(3);
  const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(4).num_beams(2);
  const auto whole = generate(model, src, options);
  with_both(model, src, {}, [&](const EncodedSources& sources) {
    const auto found = sources.select({2, 0}).generate(options);
    EXPECT_EQ(found[0][0].tokens, whole[2][0].tokens);
    EXPECT_EQ(found[1][0].tokens, whole[0][0].tokens);
    EXPECT_EQ(sources.attention({{1}, {1, 3}, {1}}, {{0, 1}})[1].sizes(),
              (std::vector<int64_t>{1, 2, kTinyFrames / 2}));
    EXPECT_ERROR(sources.generate(GenerateOptions(options).encoder_repetition_penalty(1.5)),
                 c10::ValueError,
                 "[generate] encoder_repetition_penalty must be 1 for sources that are features");
    EXPECT_ERROR(sources.generate(GenerateOptions(options).encoder_no_repeat_ngram_size(2)),
                 c10::ValueError, "encoder_no_repeat_ngram_size must be 0 for sources that are");
  });
  EXPECT_ERROR(encode_sources(freeze(model), src.narrow(2, 0, 10)), c10::ValueError,
               "features must be (B, 5, 12)");
  const auto ids = torch::zeros({2, 4}, torch::kLong);
  constexpr const char* kRule = "src must be features (B, M, W), floating-point. Got CPULongType [";
  EXPECT_ERROR(encode_sources(freeze(model), ids), c10::ValueError, kRule);
  EXPECT_ERROR(generate(model, ids, options), c10::ValueError, kRule);
  EXPECT_ERROR(generate(tiny_model(), src, options), c10::ValueError,
               "[generate] src must be ids (B, S). Got [3, 5, 12]");
}

TEST(EncodedSources, ServeThreads) {
  Dice dice(9);
  const auto model = any_model(dice, 9);
  const auto sources = encode_sources(freeze(model), any_ids(dice, 3, 8, false));
  const auto search = [&](int64_t i) {
    return sources.select({i % 3}).generate(
        GenerateOptions(kBegin, kEnd).max_new_tokens(6 + i).num_beams(1 + i % 2));
  };
  std::vector<Found> expected, got(6);
  for (int64_t i = 0; i < 6; ++i) expected.push_back(search(i));
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 6; ++i) threads.emplace_back([&, i] { got[i] = search(i); });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < 6; ++i) expect_bit_equal(got[i], expected[i]);
}

// A batch whose tensors the caller fills with the next one.
TEST(EncodedSources, KeepTheirOwnCopies) {
  Dice dice(13);
  const auto model = any_model(dice, 13);
  const int64_t heads = common_heads(model->options);
  const auto options =
      GenerateOptions(kBegin, kEnd).max_new_tokens(5).eos_ids({}).encoder_no_repeat_ngram_size(1);
  for (const bool is_frozen : {false, true}) {
    const auto src = any_ids(dice, 2, 6, false);
    const auto keys = torch::ones({2, 6}, torch::kBool), bias = torch::randn({2, heads, 1, 6});
    keys[1].slice(0, 3) = false;
    const auto mask = AttentionMask::key_padding(keys) & AttentionMask::additive(bias);
    const auto sources =
        is_frozen ? encode_sources(freeze(model), src, mask) : encode_sources(model, src, mask);
    const auto found = sources.generate(options);
    const auto logits = sources.next_logits({{kBegin}, {kBegin, 4}});
    src.fill_(3);
    keys.fill_(true);
    bias.zero_();
    expect_equal(sources.generate(options), found);
    EXPECT_TRUE(bit_equal(sources.next_logits({{kBegin}, {kBegin, 4}}), logits));
  }
}

TEST(EncodedSources, KeepTheModel) {
  Dice dice(10);
  auto model = any_model(dice, 10);
  const auto src = any_ids(dice, 2, 5, false);
  const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(5);
  const auto expected = generate(model, src, options);
  const auto sources = encode_sources(model, src);
  model = nullptr;
  expect_bit_equal(sources.generate(options), expected);
}

TEST(EncodedSources, MayBeNone) {
  Dice dice(11);
  const auto model = any_model(dice, 11);
  with_both(model, torch::zeros({0, 4}, torch::kLong), {}, [&](const EncodedSources& sources) {
    EXPECT_EQ(sources.size(), 0);
    EXPECT_TRUE(sources.generate(GenerateOptions(kBegin, kEnd).max_new_tokens(5)).empty());
    EXPECT_EQ(sources.next_logits({}).size(1), model->options.tgt_vocab());
    EXPECT_TRUE(sources.attention({}, {{0, 0}}).empty());
    EXPECT_EQ(sources.select({}).size(), 0);
  });
}

TEST(EncodedSourcesErrors, NameWhatIsWrong) {
  Dice dice(12);
  auto model = any_model(dice, 12);
  const auto src = any_ids(dice, 2, 5, false);
  with_both(model, src, {}, [&](const EncodedSources& sources) {
    EXPECT_ERROR(sources.select({0, 2}), c10::ValueError,
                 "[EncodedSources] a source must lie in [0, 2). Got 2");
    EXPECT_ERROR(sources.next_logits({{1}}), c10::ValueError,
                 "[next_logits] there must be one target for each of the 2 sources. Got 1");
    EXPECT_ERROR(sources.next_logits({{1}, {}}), c10::ValueError, "target 1 must have the token");
    EXPECT_ERROR(sources.next_logits({{1}, {999}}), c10::ValueError, "the tokens of target 1");
    const std::vector<int64_t> long_one(65, 1);
    EXPECT_ERROR(sources.next_logits({{1}, long_one}), c10::ValueError,
                 "[next_logits] target 1 must have at most the model's max_len 64 tokens. Got 65");
    EXPECT_ERROR(sources.attention({{1}, {1}}, {{0, 0}, {99, 0}}), c10::ValueError,
                 "[attention] a layer and a head must lie in [0, ");
    EXPECT_ERROR(sources.generate(GenerateOptions(kBegin, kEnd).max_new_tokens(5).num_beams(0)),
                 c10::ValueError, "num_beams must be positive");
  });
  const auto sources = encode_sources(model, src);
  const auto frozen = encode_sources(freeze(model), src);
  model->train();
  EXPECT_ERROR(sources.next_logits({{1}, {1}}), c10::ValueError,
               "[next_logits] the model must be in eval mode");
  EXPECT_ERROR(encode_sources(model, src), c10::ValueError, "must be in eval mode");
  model->eval();
  EXPECT_ERROR(encode_sources(model, src[0]), c10::ValueError, "[encode_sources] src must be ids");
  EXPECT_ERROR(encode_sources(freeze(model), {}), c10::ValueError, "Got an undefined tensor");
  EXPECT_ERROR(encode_sources(Transformer(nullptr), src), c10::ValueError, "an empty holder");
  const torch::NoGradGuard no_grad;
  model->final_layer->effective_weight().mul_(2.0);
  EXPECT_ERROR(frozen.next_logits({{1}, {1}}), c10::Error, "freeze");
}

TEST(EncodedSourcesErrors, NameWhatWasMovedFrom) {
  Dice dice(13);
  const auto model = any_model(dice, 13);
  const auto src = any_ids(dice, 2, 5, false);
  const auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(2);
  auto sources = encode_sources(model, src);
  const auto other = std::move(sources);
  EXPECT_EQ(other.size(), 2);
  constexpr const char* kSources = "[EncodedSources] must refer to a model. Got an object that was";
  EXPECT_ERROR(sources.select({0}), c10::ValueError, kSources);
  EXPECT_ERROR(sources.generate(options), c10::ValueError, kSources);
  EXPECT_ERROR(sources.next_logits({}), c10::ValueError, kSources);
  EXPECT_ERROR(sources.attention({}, {}), c10::ValueError, kSources);
  EXPECT_EQ(sources.size(), 0);
  auto frozen = freeze(model);
  const auto held = std::move(frozen);
  const auto refused = [](const auto& call) {
    EXPECT_ERROR(call(), c10::ValueError,
                 "[FrozenTransformer] must refer to a model. Got an object that was moved from");
  };
  refused([&] { frozen.encode(src); });
  refused([&] { frozen.decode(src, held.encode(src)); });
  refused([&] { frozen.options(); });
  refused([&] { frozen.bytes(); });
  refused([&] { generate(frozen, src, options); });
  refused([&] { encode_sources(frozen, src); });
  refused([&] { score(frozen, src, {}, {{1}, {1}}); });
  auto encoder = freeze(model->encoder);
  const auto kept = std::move(encoder);
  EXPECT_ERROR(encoder.forward(held.encode(src)), c10::ValueError,
               "[FrozenTransformerEncoder] must refer to a model. Got an object that was moved");
}

}  // namespace
}  // namespace posenc::testing
