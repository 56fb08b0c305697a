// Edge cases of frozen models and searches: empty axes and axes of size one, masks of all shapes,
// and NaN.

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/default_dtype.h"
#include "support/search_reference.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

GenerateOptions up_to(int64_t max_new_tokens) {
  return GenerateOptions(kBegin, kEnd).max_new_tokens(max_new_tokens);
}

TEST(FreezeEdges, AnAxisMayBeEmpty) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 6; ++seed) {
    Dice dice(seed);
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model, FreezeOptions().gemm(kGemmBackends[seed % 3]));
    const int64_t width = model->options.d_model();
    for (const auto& [batch, targets, keys] :
         {std::array<int64_t, 3>{0, 3, 4}, {2, 0, 4}, {0, 0, 0}, {2, 3, 0}, {0, 3, 0}}) {
      SCOPED_TRACE(::testing::Message() << batch << " " << targets << " " << keys);
      const auto tgt = any_ids(dice, batch, targets, false);
      const auto memory = torch::randn({batch, keys, width});
      const auto causal = AttentionMask::causal();
      EXPECT_TRUE(computes(frozen.decode(tgt, memory, causal), model, [&](auto& from, auto dtype) {
        return from.decode(tgt, memory.to(dtype), causal);
      }));
      const auto src = any_ids(dice, batch, keys, false);
      EXPECT_TRUE(
          computes(frozen.encode(src), model, [&](auto& from, auto) { return from.encode(src); }));
    }
  }
}

TEST(FreezeEdges, SourcesMayBeEmpty) {
  Dice dice(2);
  auto model = any_model(dice, 2);
  const auto frozen = freeze(model);
  const auto padding = any_ids(dice, 3, 5, false);
  padding[1].fill_(kPad);  // a source without tokens
  for (const int64_t beams : {1, 3}) {
    const auto options = up_to(7).num_beams(beams).num_return_sequences(beams);
    for (const auto& src : {torch::empty({2, 0}, torch::kLong), padding}) {
      const auto mask = AttentionMask::padding(src, kPad);
      SearchReference reference(model, src, mask, options, Op::Scores);
      const auto plain = generate(*model, src, mask, options);
      EXPECT_TRUE(found_the_same(generate(frozen, src, mask, options), plain, reference));
    }
  }
}

// A float32 model stays float32 in a program whose default dtype is float64 or bfloat16.
TEST(FreezeEdges, WithAnyDefaultType) {
  const torch::NoGradGuard no_grad;
  for (unsigned seed = 0; seed < 3; ++seed) {
    Dice dice(seed);
    auto model = any_model(dice, seed);
    const auto src = any_ids(dice, 3, 9, true), tgt = any_ids(dice, 3, 5, false);
    const auto mask = AttentionMask::padding(src, kPad);
    const auto options = up_to(6);
    const auto run = [&] {
      const auto frozen = freeze(model, FreezeOptions().gemm(kGemmBackends[seed]));
      const auto memory = frozen.encode(src, mask);
      std::vector<torch::Tensor> parts = {memory.flatten(),
                                          frozen.decode(tgt, memory, {}, mask).flatten()};
      for (const int64_t beams : {1, 3}) {
        const auto search = GenerateOptions(options).num_beams(beams);
        for (const auto& found :
             {generate(frozen, src, mask, search), generate(*model, src, mask, search)})
          parts.push_back(torch::full({1}, found[2][0].score, torch::kFloat));
      }
      return torch::cat(parts);
    };
    const auto expected = run();
    for (const auto dtype : {torch::kDouble, torch::kBFloat16}) {
      const DefaultDtype other(dtype);
      EXPECT_TRUE(within(Op::Layers, run(), expected)) << dtype;
    }
  }
}

// Padding counts towards the length, as in the module.
TEST(FreezeEdges, SourcesPastTheTable) {
  auto model = tiny_model();
  const auto frozen = freeze(model);
  auto src = torch::full({2, 17}, kPad, torch::kLong);
  src.narrow(1, 0, 3).fill_(5);
  for (const auto& mask : {AttentionMask(), AttentionMask::padding(src, kPad)}) {
    EXPECT_ERROR(model->encode(src, mask), c10::ValueError, "length 17 exceeds max_len 16");
    EXPECT_ERROR(frozen.encode(src, mask), c10::ValueError, "length 17 exceeds max_len 16");
    EXPECT_ERROR(generate(frozen, src, mask, up_to(3)), c10::ValueError,
                 "length 17 exceeds max_len 16");
  }
}

TEST(FreezeEdges, EncodersOfOddWidths) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(seed(31));
  for (const int64_t width : {1, 3, 7, 15, 17, 21, 35})
    for (const int64_t heads : {int64_t{1}, width}) {
      TransformerEncoder encoder(
          TransformerEncoderOptions(TransformerLayerOptions(width, heads).d_ff(width + 2), 2));
      encoder->eval();
      TransformerEncoder wide(std::dynamic_pointer_cast<TransformerEncoderImpl>(encoder->clone()));
      wide->to(torch::kDouble);
      const auto frozen = freeze(encoder);
      for (const int64_t batch : {1, 13}) {
        const auto x = torch::randn({batch, 5, width});
        EXPECT_TRUE(within(Op::Layers, frozen.forward(x), encoder->forward(x),
                           wide->forward(x.to(torch::kDouble))))
            << "width " << width << " heads " << heads;
      }
      const auto x = torch::randn({2, 5, width});
      const auto none = AttentionMask::key_padding(torch::zeros({2, 5}, torch::kBool));
      EXPECT_TRUE(bit_equal(frozen.forward(x, none), torch::zeros_like(x)));
    }
}

// Sizes below a vector's width, and those that are not multiples of it.
TEST(FreezeEdges, WidthsAndVocabulariesOfAnySize) {
  const torch::NoGradGuard no_grad;
  for (const int64_t width : {2, 6, 14, 16, 18, 34})
    for (const int64_t vocab : {3, 4, 15, 16, 17, 33}) {
      SCOPED_TRACE(::testing::Message() << "width " << width << " vocabulary " << vocab);
      torch::manual_seed(seed(static_cast<uint64_t>(width * 100 + vocab)));
      Transformer model(TransformerOptions(vocab, vocab)
                            .d_model(width)
                            .num_heads(1)
                            .num_encoder_layers(1)
                            .num_decoder_layers(1)
                            .d_ff(width + 1)
                            .max_len(9));
      model->eval();
      const auto frozen = freeze(model);
      const auto src = torch::randint(0, vocab, {3, 4}, torch::kLong);
      for (const int64_t beams : {1, 4}) {
        const auto options =
            GenerateOptions(1, 2).max_new_tokens(8).num_beams(beams).num_return_sequences(beams);
        SearchReference reference(model, src, {}, options, Op::Scores);
        const auto plain = generate(*model, src, {}, options);
        EXPECT_TRUE(found_the_same(generate(frozen, src, {}, options), plain, reference));
        EXPECT_TRUE(reference.may_find(0, plain[0]));
      }
    }
}

TEST(FreezeEdges, AVocabularyOfFewerSequencesThanBeams) {
  for (const int64_t vocab : {1, 2, 3}) {
    torch::manual_seed(seed(3));
    Transformer model(TransformerOptions(5, vocab).d_model(4).num_heads(1).d_ff(4).max_len(4));
    model->eval();
    const auto options =
        GenerateOptions(0, vocab - 1).max_new_tokens(1).num_beams(5).num_return_sequences(5);
    const auto src = torch::tensor({{1, 2}, {3, 4}});
    const auto found = generate(freeze(model), src, {}, options);
    for (const auto& all : found) EXPECT_EQ(all.size(), static_cast<size_t>(vocab));
    SearchReference reference(model, src, {}, options, Op::Scores);
    EXPECT_TRUE(found_the_same(found, generate(*model, src, {}, options), reference));
  }
}

// A decoder's NaN, or no allowed token at all, is an error rather than an empty list of hypotheses.
// Values that are masked out have no effect.
TEST(GenerateEdges, FailsWithoutCandidates) {
  Dice dice(5);
  auto model = any_model(dice, 5);
  const int64_t vocab = model->options.tgt_vocab();
  const auto src = any_ids(dice, 3, 4, false);
  std::vector<int64_t> all(vocab);
  for (int64_t i = 0; i < vocab; ++i) all[i] = i;
  const auto base = up_to(5);
  const std::vector<GenerateOptions> searches = {
      base, GenerateOptions(base).num_beams(3).num_return_sequences(3),
      GenerateOptions(base).do_sample(true).num_return_sequences(2)};
  const auto check = [&](auto&& from, const char* what) {
    for (const auto& options : searches) {
      EXPECT_ERROR(generate(from, src, {}, options), c10::ValueError, what);
    }
  };
  for (const auto& options : searches) {
    auto none = GenerateOptions(options).suppress_tokens(all);
    EXPECT_ERROR(generate(*model, src, {}, none), c10::ValueError, "[generate] token 1 of source");
    EXPECT_ERROR(generate(freeze(model), src, {}, none.renormalize(true)), c10::ValueError,
                 "must have a logit");
    none.forced_eos_ids({kEnd}).max_new_tokens(1);
    EXPECT_ERROR(generate(freeze(model), src, {}, none), c10::ValueError,
                 "forced_eos_ids must not all be among suppress_tokens");
  }
  const torch::NoGradGuard no_grad;
  auto bias = model->named_parameters()["decoder.layers.0.linear2.weight"];
  const auto before = bias.clone();
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    bias.fill_(number);
    check(*model, "must have a logit that is a number");
    check(freeze(model), "must have a logit that is a number");
  }
  bias.copy_(before);
  const auto frozen = freeze(model);
  for (const auto& options : searches) EXPECT_EQ(generate(frozen, src, {}, options).size(), 3u);
}

Transformer untied_model(unsigned seed) {
  torch::manual_seed(testing::seed(seed));
  Transformer model(TransformerOptions(20, 20).d_model(16).num_heads(2).d_ff(16).max_len(16));
  model->eval();
  return model;
}

// A token with a NaN in its vector makes all logits after it NaN.
TEST(GenerateEdges, ABeamOfNaNs) {
  const torch::NoGradGuard no_grad;
  auto model = untied_model(20);
  const auto src = torch::tensor({{3, 4, 5}, {6, 7, 8}});
  const auto options = up_to(4).eos_ids({}).num_beams(3);
  const auto first =
      generate(*model, src, {}, GenerateOptions(options).max_new_tokens(1).num_return_sequences(3));
  model->tgt_embedding->token_embedding->weight[first[1][2].tokens[0]].fill_(std::nan(""));
  EXPECT_ERROR(generate(*model, src, {}, options), c10::ValueError,
               "must have a logit that is a number");
  EXPECT_ERROR(generate(freeze(model), src, {}, options), c10::ValueError,
               "must have a logit that is a number");
}

// A finished sample is still decoded while others of its source go on; its further tokens are
// ignored.
TEST(GenerateEdges, TokensAfterTheEndOfASampleHaveNoEffect) {
  const torch::NoGradGuard no_grad;
  auto model = untied_model(21);
  model->final_layer->bias[kEnd] += 2.0;
  const auto src = torch::tensor({{3, 4, 5}, {6, 7, 8}});
  const auto draw = [&](auto&& from) {
    return generate(from, src, {},
                    up_to(12).do_sample(true).num_return_sequences(6).generator(
                        at::detail::createCPUGenerator(seed(21))));
  };
  const auto expected = draw(*model);
  model->tgt_embedding->token_embedding->weight[kEnd].fill_(std::nan(""));
  const auto plain = draw(*model), frozen = draw(freeze(model));
  std::set<size_t> lengths;
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(plain[b][i].tokens, expected[b][i].tokens);
      EXPECT_EQ(frozen[b][i].tokens, expected[b][i].tokens);
      lengths.insert(expected[b][i].tokens.size());
    }
  EXPECT_GT(lengths.size(), 2u);
}

// Once the beam has ended, no live beam is left; the search returns what it has found.
TEST(GenerateEdges, OneTokenThatMayBeWritten) {
  Dice dice(6);
  auto model = any_model(dice, 6);
  std::vector<int64_t> others;
  for (int64_t i = 0; i < model->options.tgt_vocab(); ++i)
    if (i != kEnd) others.push_back(i);
  const auto src = any_ids(dice, 2, 4, false);
  for (const int64_t beams : {1, 3}) {
    const auto options =
        up_to(5).num_beams(beams).num_return_sequences(beams).suppress_tokens(others);
    for (const auto& all : generate(freeze(model), src, {}, options)) {
      ASSERT_EQ(all.size(), 1u);
      EXPECT_EQ(all[0].tokens, std::vector<int64_t>{kEnd});
    }
  }
}

TEST(GenerateEdges, TheLastStepFinishesEverySource) {
  Dice dice(7);
  auto model = any_model(dice, 7);
  const auto src = any_ids(dice, 3, 4, false);
  for (const int64_t beams : {1, 3}) {
    std::vector<int64_t> finished;
    generate(freeze(model), src, {},
             up_to(4).eos_ids({}).num_beams(beams).progress([&](const GenerateProgress& progress) {
               finished.push_back(progress.finished);
               return true;
             }));
    EXPECT_EQ(finished, (std::vector<int64_t>{0, 0, 0, 3}));
  }
}

TEST(GenerateEdges, InvalidOptions) {
  Dice dice(8);
  auto model = any_model(dice, 8);
  const auto src = any_ids(dice, 1, 2, false);
  const auto base = up_to(3);
  const double inf = std::numeric_limits<double>::infinity();
  for (const double number : {std::nan(""), inf, -inf}) {
    EXPECT_ERROR(generate(*model, src, {}, GenerateOptions(base).temperature(number)),
                 c10::ValueError, "temperature must be above 0 and finite");
    EXPECT_ERROR(generate(*model, src, {}, GenerateOptions(base).temperature(1e-60)),
                 c10::ValueError, "temperature must be above 0 and finite");
    EXPECT_ERROR(generate(*model, src, {}, GenerateOptions(base).length_penalty(number)),
                 c10::ValueError, "length_penalty must be finite");
  }
}

// Far too large a length penalty: in float32, all scores would be 0 or infinite.
TEST(GenerateEdges, ALengthPenaltyThatLeavesNoScores) {
  auto model = tiny_model();
  const auto src = torch::tensor({{3, 4, 5}, {6, 7, 8}});
  const auto base = up_to(8).num_beams(3).num_return_sequences(3);
  for (const double penalty : {100.0, 33.5, -33.5, -100.0, 1e300, -1e300})
    for (const bool is_frozen : {false, true}) {
      const auto options = GenerateOptions(base).length_penalty(penalty);
      EXPECT_ERROR(is_frozen ? generate(freeze(model), src, {}, options)
                             : generate(*model, src, {}, options),
                   c10::ValueError,
                   "max_new_tokens ^ length_penalty must lie between 1e-30 and 1e+30");
    }
  for (const double penalty : {33.0, -33.0}) {
    const auto options = GenerateOptions(base).length_penalty(penalty);
    SearchReference reference(model, src, {}, options, Op::Scores);
    const auto found = generate(*model, src, {}, options);
    EXPECT_TRUE(found_the_same(generate(freeze(model), src, {}, options), found, reference));
    for (const auto& all : found)
      for (const auto& one : all) EXPECT_TRUE(std::isfinite(one.score) && one.score < 0.0);
  }
  generate(*model, src, {}, GenerateOptions(base).max_new_tokens(1).length_penalty(1e9));
}

TEST(GenerateEdges, DrawsTheBestTokensWhenCold) {
  auto model = tiny_model();  // no token of which is certain
  const auto src = torch::tensor({{3, 4, 5}, {6, 7, 8}});
  const auto base = up_to(5);
  const auto best = generate(*model, src, {}, base);
  const auto cold = GenerateOptions(base).do_sample(true).temperature(1e-40);
  const auto drawn = generate(*model, src, {}, cold);
  for (size_t b = 0; b < 2; ++b) EXPECT_EQ(drawn[b][0].tokens, best[b][0].tokens);
}

// One of several beams has become NaN; it might have been the best one.
TEST(GenerateEdges, OneBeamWithoutANumber) {
  auto model = tiny_model();
  const auto src = torch::tensor({{3, 4, 5}});
  const auto options = up_to(4).eos_ids({}).suppress_tokens({kBegin}).num_beams(3);
  const auto first = generate(*model, src, {}, GenerateOptions(options).max_new_tokens(1))[0][0];
  const torch::NoGradGuard no_grad;
  model->tgt_embedding->token_embedding->weight[first.tokens[0]].fill_(std::nan(""));
  for (const int64_t beams : {1, 3}) {
    const auto search = GenerateOptions(options).num_beams(beams);
    EXPECT_ERROR(generate(*model, src, {}, search), c10::ValueError, "token 2 of source 0");
    EXPECT_ERROR(generate(freeze(model), src, {}, search), c10::ValueError, "token 2 of source 0");
  }
}

// With a length penalty of 0, a score does not depend on the length, so the two agree; both
// continue where WhenFull stops.
TEST(GenerateEdges, NeverWithoutALengthPenaltyIsWhenUnlikely) {
  int longer = 0, shorter = 0;
  const auto src = torch::tensor({{3, 4, 5, 6}, {7, 8, 5, 9}});
  for (unsigned seed = 0; seed < 30; ++seed) {
    torch::manual_seed(testing::seed(seed));
    Transformer model(tiny());
    model->eval();
    int64_t steps[3] = {};
    Found found[3];
    for (const auto early :
         {EarlyStopping::WhenFull, EarlyStopping::WhenUnlikely, EarlyStopping::Never}) {
      const auto i = static_cast<size_t>(early);
      found[i] = generate(*model, src, {},
                          up_to(12)
                              .eos_ids({kEnd, 4, 6})
                              .num_beams(2)
                              .num_return_sequences(2)
                              .length_penalty(0.0)
                              .early_stopping(early)
                              .progress([&](const GenerateProgress& progress) {
                                steps[i] = progress.step;
                                return true;
                              }));
    }
    EXPECT_EQ(steps[2], steps[1]);
    for (size_t b = 0; b < 2; ++b)
      for (size_t n = 0; n < 2; ++n) EXPECT_EQ(found[2][b][n].tokens, found[1][b][n].tokens);
    longer += steps[1] > steps[0];
    shorter += steps[2] < 12;
  }
  EXPECT_GT(longer, 0);
  EXPECT_GT(shorter, 0) << "nothing can get better with more tokens";
}

}  // namespace
}  // namespace posenc::testing
