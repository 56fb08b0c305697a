// posenc-budget: one class, an input after the other
// Encoder and its frozen form: inputs, outputs and errors.

#include <gtest/gtest.h>

#include <functional>
#include <sstream>

#include "models/encoder/tiny_folder.h"
#include "posenc/models/encoder.h"
#include "posenc/models/frozen_encoder.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

EncoderOptions small_options() {
  const auto layer = TransformerEncoderLayerOptions(8, 2).d_ff(12).activation(Activation::GELU);
  return EncoderOptions(EncoderEmbeddingsOptions(11, 8)
                            .position_rows(9)
                            .type_vocab_size(2)
                            .norm(embeddings::Norm::AfterSum)
                            .dropout(0.1),
                        TransformerEncoderOptions(layer, 2))
      .pooling(encoder::Pooling::TanhOfFirst);
}

Encoder small_encoder(const EncoderOptions& options = small_options()) {
  torch::manual_seed(3);
  Encoder model(options);
  model->eval();
  return model;
}

struct ShortBatch {
  torch::Tensor ids = torch::tensor({{2, 5, 7, 3}, {2, 9, 3, 0}});
  torch::Tensor mask = torch::tensor({{1, 1, 1, 1}, {1, 1, 1, 0}});
  EncoderInputs inputs = EncoderInputs().attention_mask(mask);
};

// 0: none.
EncoderOptions with_buckets(EncoderOptions options, int64_t buckets) {
  if (buckets > 0) options.encoder().relative(relative::Buckets{.num_buckets = buckets});
  return options;
}

TEST(EncoderModel, HasItsKeysAndCloses) {
  auto model = small_encoder(with_buckets(small_options(), 4));
  std::vector<std::string> names;
  for (const auto& item : model->named_children()) names.push_back(item.key());
  EXPECT_EQ(names, (std::vector<std::string>{"embeddings", "encoder", "pooler"}));
  const auto copy = std::dynamic_pointer_cast<EncoderImpl>(model->clone());
  copy->eval();
  const ShortBatch batch;
  EXPECT_TRUE(bit_equal(copy->forward(batch.ids, batch.inputs).pooled,
                        model->forward(batch.ids, batch.inputs).pooled));
  std::ostringstream text;
  model->pretty_print(text);
  EXPECT_EQ(text.str(), "posenc::Encoder(pooling=TanhOfFirst)");
}

// A masked token must not change the others, nor its own embedding.
TEST(EncoderModel, LooksAtTokensOnly) {
  const ShortBatch batch;
  for (const int64_t buckets : {0, 32}) {
    for (const bool causal : {false, true}) {
      auto model = small_encoder(with_buckets(small_options().causal(causal), buckets));
      const auto out = model->forward(batch.ids, batch.inputs);
      auto other = batch.ids.clone();
      other[1][3] = 10;
      const auto changed = model->forward(other, batch.inputs);
      EXPECT_TRUE(within(Op::Layers, changed.last_hidden_state[1].slice(0, 0, 3),
                         out.last_hidden_state[1].slice(0, 0, 3)));
      EXPECT_FALSE(bit_equal(model->forward(other).last_hidden_state[1],
                             model->forward(batch.ids).last_hidden_state[1]));
      const auto shorter = model->forward(batch.ids.narrow(1, 0, 2));
      EXPECT_EQ(causal, bool(within(Op::Layers, shorter.last_hidden_state,
                                    model->forward(batch.ids).last_hidden_state.narrow(1, 0, 2))));
    }
  }
}

TEST(EncoderModel, UsesTheFirstRowsOfTheRelativeTable) {
  auto options = small_options();
  options.encoder().relative(relative::Buckets{.num_buckets = 4, .spare_rows = 2});
  auto model = small_encoder(options);
  EXPECT_EQ(model->encoder->relative_attention_bias->weight.size(0), 6);
  const ShortBatch batch;
  const auto out = model->forward(batch.ids);
  {
    const torch::NoGradGuard no_grad;
    model->encoder->relative_attention_bias->weight.slice(0, 4).fill_(9.0);
    EXPECT_TRUE(within(Op::Layers, model->forward(batch.ids).pooled, out.pooled));
    model->encoder->relative_attention_bias->weight[1].fill_(9.0);
    EXPECT_FALSE(bit_equal(model->forward(batch.ids).pooled, out.pooled));
  }
}

TEST(EncoderModel, PoolsTheRowOfTheEnd) {
  using encoder::Pooling;
  const auto ids = torch::tensor({{1, 6, 4, 6}, {1, 9, 3, 6}});
  const auto pooled_of = [&](Pooling pooling) {
    auto model = small_encoder(small_options().pooling(pooling).eos_token_id(6));
    const auto out = model->forward(ids);
    return std::make_pair(out.pooled, out.last_hidden_state);
  };
  const auto rows = [](const torch::Tensor& hidden, int64_t first, int64_t second) {
    return torch::stack({hidden[0][first], hidden[1][second]});
  };
  auto [end, hidden] = pooled_of(Pooling::EndToken);
  EXPECT_TRUE(bit_equal(end, rows(hidden, 1, 3)));
  auto [largest, all] = pooled_of(Pooling::LargestToken);
  EXPECT_TRUE(bit_equal(largest, rows(all, 1, 1)));
  auto [first, whole] = pooled_of(Pooling::First);
  EXPECT_TRUE(bit_equal(first, rows(whole, 0, 0)));
  EXPECT_FALSE(pooled_of(Pooling::None).first.defined());
  auto model = small_encoder(small_options().pooling(Pooling::LinearOfLast).pooler_dim(5));
  const auto out = model->forward(ids);
  EXPECT_TRUE(bit_equal(out.pooled, model->pooler->forward(rows(out.last_hidden_state, 3, 3))));
  EXPECT_EQ(out.pooled.size(1), 5);
}

TEST(EncoderModel, TrainsAllOfItsParameters) {
  auto model = small_encoder(with_buckets(small_options(), 4));
  const ShortBatch batch;
  const auto out = model->forward(batch.ids, batch.inputs);
  (out.pooled.sum() + (out.last_hidden_state * torch::randn({2, 4, 8})).sum()).backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

// The differential tests compare them with those of transformers.
TEST(EncoderModel, ReturnsWhatIsAskedFor) {
  const ShortBatch batch;
  auto model = small_encoder();
  const auto plain = model->forward(batch.ids, batch.inputs);
  EXPECT_TRUE(plain.hidden_states.empty() && plain.attentions.empty());
  const auto out = model->forward(
      batch.ids, EncoderInputs(batch.inputs).output_hidden_states(true).output_attentions(true));
  ASSERT_EQ(out.hidden_states.size(), 3U);
  EXPECT_TRUE(bit_equal(out.hidden_states[0], out.embeddings));
  EXPECT_TRUE(bit_equal(out.hidden_states[2], out.last_hidden_state));
  ASSERT_EQ(out.attentions.size(), 2U);
  EXPECT_EQ(out.attentions[0].sizes(), (std::vector<int64_t>{2, 2, 4, 4}));
  EXPECT_TRUE(within(Op::Layers, out.last_hidden_state, plain.last_hidden_state));
  EXPECT_CONTAINS(message_of([&] {
                    freeze(model).forward(batch.ids, EncoderInputs().output_attentions(true));
                  }),
                  "[FrozenEncoder] output_attentions must be false");
}

TEST(EncoderModel, GivesItsHiddenStatesFrozenToo) {
  const ShortBatch batch;
  auto model = small_encoder();
  const auto inputs = EncoderInputs(batch.inputs).output_hidden_states(true);
  const auto expected = model->forward(batch.ids, inputs),
             got = freeze(model).forward(batch.ids, inputs);
  ASSERT_EQ(got.hidden_states.size(), 3U);
  const auto is_token = batch.inputs.attention_mask().ne(0);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(within(Op::Layers, got.hidden_states[i].index({is_token}),
                       expected.hidden_states[i].index({is_token})))
        << i;
    if (i == 0) continue;
    const auto masked = got.hidden_states[i].index({is_token.logical_not()});
    EXPECT_TRUE(masked.numel() > 0 && masked.eq(0).all().item<bool>()) << i;
  }
  EXPECT_TRUE(bit_equal(got.hidden_states[2], got.last_hidden_state));
}

TEST(EncoderModel, TakesVectorsInPlaceOfIds) {
  const ShortBatch batch;
  auto model = small_encoder();
  const auto plain = model->forward(batch.ids, batch.inputs);
  auto vectors = model->embeddings->tokens->forward(batch.ids).detach().requires_grad_();
  const auto inputs = EncoderInputs(batch.inputs).inputs_embeds(vectors);
  const auto out = model->forward({}, inputs);
  EXPECT_TRUE(bit_equal(out.embeddings, plain.embeddings));
  EXPECT_TRUE(bit_equal(out.pooled, plain.pooled));
  EXPECT_TRUE(bit_equal(freeze(model).forward({}, inputs).embeddings, plain.embeddings));
  out.pooled.sum().backward();
  EXPECT_EQ(vectors.grad().sizes(), vectors.sizes());
  EXPECT_CONTAINS(message_of([&] { model->forward(batch.ids, inputs); }),
                  "[Encoder] ids must be an undefined tensor where inputs_embeds are given");
  EXPECT_CONTAINS(message_of([&] {
                    model->forward({}, EncoderInputs().inputs_embeds(torch::ones({2, 4, 7})));
                  }),
                  "[EncoderEmbeddings] inputs_embeds must be (B, L, 8) or (L, 8). Got [2, 4, 7]");
}

TEST(EncoderModel, TakesRawVectorsAsTheInputOfItsLayers) {
  const ShortBatch batch;
  auto model = small_encoder(small_options().raw_inputs_embeds(true).zero_padding(true));
  const auto inputs = EncoderInputs(batch.inputs).inputs_embeds(torch::randn({2, 4, 8}));
  const auto out = model->forward({}, inputs);
  EXPECT_TRUE(bit_equal(out.embeddings, inputs.inputs_embeds()));
  EXPECT_TRUE(within(Op::Layers, freeze(model).forward({}, inputs).pooled, out.pooled));
  EXPECT_CONTAINS(message_of([&] {
                    model->forward({}, EncoderInputs().inputs_embeds(torch::ones({2, 4, 7})));
                  }),
                  "[Encoder] inputs_embeds must be (B, L, 8). Got [2, 4, 7]");
}

// XLM: also where padding is found among the ids.
TEST(EncoderModel, ZeroesPaddingAfterEachLayer) {
  const ShortBatch batch;
  const auto options =
      small_options().zero_padding(true).zero_hidden_padding(true).pad_token_id(0).pooling(
          encoder::Pooling::Last);
  auto model = small_encoder(options);
  const auto out = model->forward(batch.ids, EncoderInputs().output_hidden_states(true));
  for (const auto& hidden : out.hidden_states)
    EXPECT_EQ(hidden[1][3].count_nonzero().item<int64_t>(), 0);
  EXPECT_EQ(out.pooled[1].count_nonzero().item<int64_t>(), 0);
  EXPECT_TRUE(bit_equal(out.pooled[0], out.last_hidden_state[0][3]));
  EXPECT_TRUE(
      bit_equal(model->forward(batch.ids, batch.inputs).last_hidden_state, out.last_hidden_state));
  const auto frozen = freeze(model).forward(batch.ids);
  EXPECT_TRUE(within(Op::Layers, frozen.last_hidden_state, out.last_hidden_state));
  EXPECT_TRUE(within(Op::Layers, frozen.pooled, out.pooled));
  EXPECT_CONTAINS(message_of([] { Encoder(small_options().zero_hidden_padding(true)); }),
                  "[Encoder] zero_hidden_padding(true) must be with zero_padding(true)");
}

// ESM-1b: before positions and the norm.
TEST(EncoderModel, DropsTokensBeforePositionsAreAdded) {
  const ShortBatch batch;
  auto model = small_encoder(small_options().token_dropout_id(7));
  auto expected = model->embeddings->tokens->forward(batch.ids).detach();
  expected[0][2] = 0.0;
  expected[0] = expected[0] * 0.88 / (1.0 - 1.0 / 4.0);
  expected[1] = expected[1] * 0.88;
  const auto same = model->forward({}, EncoderInputs(batch.inputs).inputs_embeds(expected));
  const auto out = model->forward(batch.ids, batch.inputs);
  EXPECT_TRUE(out.embeddings.allclose(same.embeddings, 1e-6, 1e-6));
  EXPECT_TRUE(bit_equal(freeze(model).forward(batch.ids, batch.inputs).embeddings, out.embeddings));
  EXPECT_CONTAINS(message_of([&] { model->forward(torch::full({1, 2}, 11)); }),
                  "[Encoder] every id must lie in [0, vocab_size) = [0, 11). Got 11");
}

TEST(EncoderModel, RefusesWrongBoxes) {
  auto options = small_options();
  options.embeddings()->box_positions(5);
  auto model = small_encoder(options);
  const ShortBatch batch;
  const auto refused = [&](const torch::Tensor& bbox) {
    return message_of([&] { model->forward(batch.ids, EncoderInputs().bbox(bbox)); });
  };
  EXPECT_CONTAINS(refused(torch::zeros({2, 4, 3}, torch::kLong)),
                  "[EncoderEmbeddings] bbox must be [2, 4, 4], x0, y0, x1 and y1 of each token");
  EXPECT_CONTAINS(refused(torch::zeros({2, 4, 4})),
                  "[EncoderEmbeddings] bbox must be integers. Got Float");
  EXPECT_CONTAINS(refused(torch::full({2, 4, 4}, 5)),
                  "edge, height and width of a box must lie in [0, max_2d_position_embeddings) = "
                  "[0, 5). Got 5");
  auto upside_down = torch::zeros({2, 4, 4}, torch::kByte);
  upside_down[1][2][1] = 3;
  EXPECT_CONTAINS(refused(upside_down), "Got -3");
  EXPECT_CONTAINS(message_of([&] {
                    small_encoder()->forward(
                        batch.ids, EncoderInputs().bbox(torch::zeros({2, 4, 4}, torch::kLong)));
                  }),
                  "[EncoderEmbeddings] these embeddings have no boxes");
}

TEST(FrozenEncoder, ComputesTheSame) {
  const ShortBatch batch;
  for (const int64_t buckets : {0, 32}) {
    for (const bool causal : {false, true}) {
      auto model = small_encoder(with_buckets(small_options().causal(causal), buckets));
      const auto out = model->forward(batch.ids, batch.inputs);
      model->train();
      const auto frozen = freeze(model);
      const auto got = frozen.forward(batch.ids, batch.inputs);
      EXPECT_TRUE(model->is_training()) << "freezing changes no mode";
      EXPECT_TRUE(bit_equal(got.embeddings, out.embeddings));
      const auto real = batch.mask.ne(0).unsqueeze(-1);
      EXPECT_TRUE(within(Op::Layers, got.last_hidden_state.masked_select(real),
                         out.last_hidden_state.masked_select(real)));
      EXPECT_TRUE(within(Op::Layers, got.pooled, out.pooled));
      EXPECT_FALSE(got.last_hidden_state.requires_grad());
      EXPECT_TRUE(bit_equal(got.last_hidden_state[1][3], torch::zeros({8})));
      EXPECT_EQ(frozen.bytes().own, 0) << "weights are shared";
    }
  }
}

// As in transformers, a masked token attends to the real ones.
TEST(FrozenEncoder, PoolsRowsOfMaskedTokens) {
  using encoder::Pooling;
  const auto ids = torch::tensor({{9, 5, 6, 7}, {2, 9, 3, 10}});
  const auto right = torch::tensor({{1, 1, 1, 1}, {1, 1, 1, 0}});
  const auto left = torch::tensor({{0, 1, 1, 1}, {1, 1, 1, 1}});
  const std::tuple<Pooling, bool, torch::Tensor> cases[] = {
      {Pooling::LinearOfLast, false, right}, {Pooling::LargestToken, true, right},
      {Pooling::EndToken, true, right},      {Pooling::TanhOfFirst, false, left},
      {Pooling::First, false, left},
  };
  for (const auto& [pooling, causal, mask] : cases) {
    SCOPED_TRACE(static_cast<int>(pooling));
    for (const int64_t buckets : {0, 32}) {
      auto options = with_buckets(small_options().pooling(pooling).causal(causal), buckets);
      auto model = small_encoder(options.eos_token_id(10));
      const auto inputs = EncoderInputs().attention_mask(mask);
      const auto out = model->forward(ids, inputs), got = freeze(model).forward(ids, inputs);
      EXPECT_TRUE(within(Op::Layers, got.pooled, out.pooled));
      const auto padding = mask.eq(0).unsqueeze(-1);
      EXPECT_TRUE(within(Op::Layers, got.last_hidden_state,
                         out.last_hidden_state.masked_fill(padding, 0.0)));
    }
  }
}

TEST(FrozenEncoder, NoticesChangesAndEmptyHolders) {
  auto model = small_encoder();
  const auto frozen = freeze(model);
  {
    const torch::NoGradGuard no_grad;
    model->pooler->weight.mul_(2.0);
  }
  const ShortBatch batch;
  EXPECT_ERROR(frozen.forward(batch.ids), c10::Error, "freeze");
  EXPECT_ERROR(freeze(Encoder(nullptr)), c10::ValueError, "must not be an empty holder");
  std::ostringstream text;
  text << frozen;
  EXPECT_EQ(text.str(),
            "posenc::FrozenEncoder(ids, num_layers=2, d_model=8, num_heads=2, d_ff=12)");
}

// The frozen model must not be the only one that still holds a replaced tensor.
TEST(FrozenEncoder, NoticesReplacedParts) {
  const ShortBatch batch;
  const auto options = with_buckets(small_options(), 4);
  const auto expect_stale = [&](const char* part, const std::function<void(Encoder&)>& replace) {
    SCOPED_TRACE(part);
    auto model = small_encoder(options);
    const auto frozen = freeze(model);
    EXPECT_NO_THROW(frozen.forward(batch.ids));
    replace(model);
    EXPECT_ERROR(frozen.forward(batch.ids), c10::Error, part);
  };
  expect_stale("pooler.weight", [](Encoder& model) {
    model->pooler = model->replace_module("pooler", torch::nn::Linear(8, 8));
  });
  expect_stale("modules that were added, removed or replaced", [](Encoder& model) {
    model->encoder->relative_attention_bias = model->encoder->replace_module(
        "relative_attention_bias", RelativePositionBias(relative::Buckets{.num_buckets = 4}, 2));
  });
  expect_stale("embeddings.", [&](Encoder& model) {
    model->embeddings =
        model->replace_module("embeddings", EncoderEmbeddings(*options.embeddings()));
  });
  Encoder images(EncoderOptions(VisionEmbeddingsOptions(4, 2, 8), options.encoder()));
  const auto frozen = freeze(images);
  const auto pixels = torch::ones({2, 3, 4, 4});
  EXPECT_NO_THROW(frozen.forward(pixels));
  EXPECT_EQ(frozen.bytes().own, 0) << "weights are shared";
  images->patches =
      images->replace_module("embeddings", VisionEmbeddings(VisionEmbeddingsOptions(4, 2, 8)));
  EXPECT_ERROR(frozen.forward(pixels), c10::Error, "embeddings.");
}

TEST(FrozenEncoder, ItsPoolerMayHaveNoBias) {
  const torch::NoGradGuard no_grad;
  const ShortBatch batch;
  auto model = small_encoder();
  model->pooler = model->replace_module(
      "pooler", torch::nn::Linear(torch::nn::LinearOptions(8, 8).bias(false)));
  const auto out = freeze(model).forward(batch.ids);
  EXPECT_TRUE(within(Op::Layers, out.pooled, model->forward(batch.ids).pooled));
}

TEST(FrozenEncoder, NoticesOtherOptionsOfItsEmbeddings) {
  const ShortBatch batch;
  const auto noticed = [&](const char* part, const auto& change) {
    auto model = small_encoder();
    const auto frozen = freeze(model);
    frozen.forward(batch.ids);
    change(*model->embeddings);
    EXPECT_ERROR(frozen.forward(batch.ids), c10::Error,
                 std::string("Got other options of ") + part);
  };
  noticed("embeddings", [](EncoderEmbeddingsImpl& embeddings) {
    embeddings.options.order(embeddings::Order::PositionsFirst);
  });
  noticed("embeddings", [](EncoderEmbeddingsImpl& embeddings) { embeddings.options.scale(2.0); });
  noticed("embeddings.LayerNorm",
          [](EncoderEmbeddingsImpl& embeddings) { embeddings.norm->options.eps(1.0); });
}

TEST(EncoderErrors, AreOfBothForms) {
  auto model = small_encoder();
  const auto frozen = freeze(model);
  const ShortBatch batch;
  const auto refused = [&](const torch::Tensor& ids, const EncoderInputs& inputs, auto check) {
    check([&] { model->forward(ids, inputs); });
    check([&] { frozen.forward(ids, inputs); });
  };
  refused(batch.ids, EncoderInputs().attention_mask(torch::ones({2, 4})), [](auto run) {
    EXPECT_ERROR(run(), c10::TypeError,
                 "[Encoder] attention_mask must be bool or an integer type. Got Float");
  });
  refused(batch.ids, EncoderInputs().attention_mask(torch::ones({4, 4}, torch::kLong)),
          [](auto run) {
            EXPECT_ERROR(run(), c10::ValueError,
                         "[Encoder] attention_mask must be (B, L) = [2, 4]. Got [4, 4]");
          });
  refused(torch::Tensor(), {}, [](auto run) {
    EXPECT_ERROR(run(), c10::ValueError, "[Encoder] ids must be (B, L). Got an undefined tensor");
  });
  refused(batch.ids[0], {}, [](auto run) {
    EXPECT_ERROR(run(), c10::ValueError, "[Encoder] ids must be (B, L). Got [4]");
  });
  refused(batch.ids.narrow(1, 0, 0), {}, [](auto run) {
    EXPECT_ERROR(run(), c10::ValueError,
                 "[Encoder] sequences must have a token that can be pooled. Got [2, 0]");
  });
  refused(torch::zeros({1, 10}, torch::kLong), {},
          [](auto run) { EXPECT_ERROR(run(), c10::IndexError, "holds 9 tokens. Got 10"); });
  refused(torch::full({1, 2}, 11), {},
          [](auto run) { EXPECT_ERROR(run(), c10::IndexError, "11"); });
  refused(batch.ids, EncoderInputs().task_type_ids(batch.ids), [](auto run) {
    EXPECT_ERROR(run(), c10::ValueError, "these embeddings have no task types");
  });
}

TEST(EncoderErrors, ImagesComeWithoutTheInputsOfText) {
  Encoder model(EncoderOptions(VisionEmbeddingsOptions(4, 2, 8), small_options().encoder()));
  model->eval();
  const auto frozen = freeze(model);
  EXPECT_ERROR(model->forward(torch::Tensor()), c10::ValueError,
               "[Encoder] pixel_values must be (B, C, H, W). Got an undefined tensor");
  const auto pixels = torch::ones({2, 3, 4, 4});
  const auto ids = torch::ones({2, 4}, torch::kLong);
  const std::pair<const char*, EncoderInputs> all[] = {
      {"attention_mask", EncoderInputs().attention_mask(ids)},
      {"token_type_ids", EncoderInputs().token_type_ids(ids)},
      {"position_ids", EncoderInputs().position_ids(ids)},
      {"task_type_ids", EncoderInputs().task_type_ids(ids)}};
  for (const auto& one : all) {  // a lambda cannot capture a structured binding
    const auto rule = std::string("an encoder of images takes no ") + one.first;
    EXPECT_ERROR(model->forward(pixels, one.second), c10::ValueError, rule);
    EXPECT_ERROR(frozen.forward(pixels, one.second), c10::ValueError, rule);
  }
}

TEST(EncoderErrors, FeaturesComeWithoutTheInputsOfText) {
  Encoder model(EncoderOptions(small_options().encoder()));
  model->eval();
  const auto frozen = freeze(model);
  const int64_t width = model->options.encoder().layer().d_model();
  const auto given = EncoderInputs().inputs_embeds(torch::ones({2, 4, width}));
  const auto ids = torch::ones({2, 4}, torch::kLong);
  const std::pair<const char*, EncoderInputs> all[] = {
      {"an encoder of features takes no token_type_ids", EncoderInputs(given).token_type_ids(ids)},
      {"an encoder of features takes no task_type_ids", EncoderInputs(given).task_type_ids(ids)},
      {"an encoder of features without a rotary embedding takes no position_ids. Got [2, 4]",
       EncoderInputs(given).position_ids(ids)}};
  for (const auto& one : all) {
    EXPECT_ERROR(model->forward({}, one.second), c10::ValueError, one.first);
    EXPECT_ERROR(frozen.forward({}, one.second), c10::ValueError, one.first);
  }
}

TEST(EncoderErrors, OptionsThatContradict) {
  const auto made = [](const EncoderOptions& options) { return Encoder(options); };
  auto both = small_options().patches(VisionEmbeddingsOptions(4, 2, 8));
  EXPECT_ERROR(made(both), c10::ValueError, "must have either embeddings or patches");
  const auto wide = EncoderOptions(EncoderEmbeddingsOptions(11, 16), small_options().encoder());
  EXPECT_ERROR(made(wide), c10::ValueError,
               "d_model of the embeddings must be that of the layers, 8");
  auto with_grid = small_options();
  with_grid.encoder().grid_bias(relative::Grid{2, 3});
  EXPECT_ERROR(made(with_grid), c10::ValueError,
               "[Encoder] grid_bias must be of an encoder of images. Got token ids");
  EXPECT_ERROR(made(small_options().pooling(encoder::Pooling::NormOfMean)), c10::ValueError,
               "[Encoder] Pooling::NormOfMean must be of an encoder of images");
  auto layers = small_options().encoder();
  const auto length_first = TransformerEncoderLayerOptions(layers.layer()).batch_first(false);
  EXPECT_ERROR(made(small_options().encoder(layers.layer(length_first))), c10::ValueError,
               "must have batch_first(true)");
}

}  // namespace
}  // namespace posenc::testing
