// Frozen models against the modules that they are made from: shapes, norms, activations, biases,
// masks, padding, tying; and the memory that they share.

#include "posenc/inference/freeze.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "inference/models.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "support/compare.h"
#include "support/seed.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

// The rows that the padding mask keeps.
torch::Tensor kept(const torch::Tensor& x, const torch::Tensor& ids) {
  return x.index({ids != kPad});
}

TransformerEncoderLayerImpl& layer_of(Transformer& model) {
  return *model->encoder->layers[0]->as<TransformerEncoderLayer>();
}

TEST(Freeze, TransformersComputeWhatTheModulesCompute) {
  const torch::NoGradGuard no_grad;
  Dice dice(1);
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model, FreezeOptions().gemm(kGemmBackends[seed % 3]));
    const int64_t batch = dice(1, 9), length = dice(1, 30), targets = dice(1, 20);
    const auto src = any_ids(dice, batch, length, dice.coin());
    const auto tgt = any_ids(dice, batch, targets, false);
    const auto mask = dice.coin() ? AttentionMask::padding(src, kPad) : AttentionMask();
    const auto causal = dice.coin() ? AttentionMask::causal() : AttentionMask();
    const auto memory = model->encode(src, mask);
    const auto rows = mask.is_none() ? torch::ones_like(src) : src;
    std::ostringstream what;
    what << "seed " << seed << " batch " << batch << " length " << length << " " << frozen;
    SCOPED_TRACE(what.str());
    EXPECT_TRUE(computes(kept(frozen.encode(src, mask), rows), model,
                         [&](auto& from, auto) { return kept(from.encode(src, mask), rows); }));
    EXPECT_TRUE(computes(
        frozen.decode(tgt, memory, causal, mask), model,
        [&](auto& from, auto dtype) { return from.decode(tgt, memory.to(dtype), causal, mask); }));
  }
}

TEST(Freeze, ManyRowsAreSplitBetweenThreads) {
  const torch::NoGradGuard no_grad;
  Dice dice(2);
  for (unsigned seed = 0; seed < 6; ++seed) {
    auto model = any_model(dice, seed);
    const auto frozen = freeze(model, FreezeOptions().gemm(GemmBackend::Native));
    const auto src = any_ids(dice, 5, 50, seed % 2 == 0);
    const auto mask = AttentionMask::padding(src, kPad);
    torch::Tensor first, logits;
    for (const int threads : {1, 2, 3, 4}) {
      const Threads set(threads);
      const auto memory = frozen.encode(src, mask);
      const auto out = frozen.decode(src, memory, AttentionMask::causal(), mask);
      if (!first.defined()) first = memory, logits = out;
      EXPECT_TRUE(bit_equal(memory, first)) << threads;
      EXPECT_TRUE(bit_equal(out, logits)) << threads;
    }
    EXPECT_TRUE(computes(kept(first, src), model,
                         [&](auto& from, auto) { return kept(from.encode(src, mask), src); }));
  }
}

TEST(Freeze, EncodersTakeEveryMask) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(seed(3));
  for (const bool batch_first : {true, false}) {
    TransformerEncoder encoder(TransformerEncoderOptions(
        TransformerLayerOptions(24, 3).d_ff(40).batch_first(batch_first), 2));
    encoder->eval();
    const auto frozen = freeze(encoder);
    const auto x = torch::randn({4, 7, 24});
    const auto keys = torch::rand({4, 7}) < 0.3;
    keys.select(1, 3).fill_(false);
    const AttentionMask masks[] = {{},
                                   AttentionMask::causal(),
                                   AttentionMask::allowed_pairs(torch::rand({7, 7}) < 0.7),
                                   AttentionMask::additive(torch::randn({4, 3, 7, 7}))};
    const auto run = [&](const auto& f, const AttentionMask& mask) {
      return batch_first ? f(x, mask) : f(x.transpose(0, 1), mask).transpose(0, 1);
    };
    const auto plain = [&](auto in, auto mask) { return encoder->forward(in, mask); };
    const auto fast = [&](auto in, auto mask) { return frozen.forward(in, mask); };
    for (const auto& mask : masks) {
      EXPECT_TRUE(within(Op::Layers, run(fast, mask), run(plain, mask)));
    }
    for (const auto& mask : masks) {
      const auto left_out = mask & AttentionMask::key_padding_torch_nn(keys);
      const auto out = run(fast, left_out);
      EXPECT_TRUE(within(Op::Layers, out.index({~keys}), run(plain, left_out).index({~keys})));
      EXPECT_TRUE(bit_equal(out.index({keys}), torch::zeros_like(out.index({keys}))));
    }
  }
}

TEST(Freeze, LeavesItsInputAlone) {
  TransformerEncoder encoder(TransformerEncoderOptions({16, 2}, 1));
  const auto x = torch::randn({2, 3, 16});
  const auto before = x.clone();
  freeze(encoder).forward(x);
  EXPECT_TRUE(bit_equal(x, before));
}

TEST(Freeze, ABatchMayBeEmptyOrAllPadding) {
  Dice dice(4);
  auto model = any_model(dice, 4);
  const auto frozen = freeze(model);
  const int64_t width = model->options.d_model();
  EXPECT_EQ(frozen.encode(torch::empty({0, 3}, torch::kLong)).sizes(),
            torch::IntArrayRef({0, 3, width}));
  const auto pads = torch::full({2, 3}, kPad, torch::kLong);
  EXPECT_TRUE(bit_equal(frozen.encode(pads, AttentionMask::padding(pads, kPad)),
                        torch::zeros({2, 3, width})));
}

TEST(Freeze, RefusesToBeStale) {
  const auto stale = [](const char* text, const auto& change) {
    Dice dice(5);
    auto model = any_model(dice, 5);
    const auto ids = any_ids(dice, 1, 4, false);
    const auto frozen = freeze(model);
    frozen.encode(ids);
    change(*model);
    EXPECT_ERROR(frozen.encode(ids), c10::Error, text);
    EXPECT_ERROR(frozen.decode(ids, torch::zeros({1, 4, model->options.d_model()})), c10::Error,
                 "freeze it again");
    EXPECT_ERROR(generate(frozen, ids, {}, GenerateOptions(1, 2).max_new_tokens(4)), c10::Error,
                 "freeze it again");
  };
  stale("other values in decoder.layers.0.linear1.weight", [](TransformerImpl& model) {
    const torch::NoGradGuard no_grad;
    model.named_parameters()["decoder.layers.0.linear1.weight"].mul_(2.0);
  });
  stale("freeze it again", [](TransformerImpl& model) { model.to(torch::kDouble); });
  stale("freeze it again", [](TransformerImpl& model) { model.reset_parameters(); });
  stale("other values in tgt_embedding.position_encoding.pe",
        [](TransformerImpl& model) { model.tgt_embedding->position_encoding->pe.mul_(2.0); });
  TransformerEncoder encoder(TransformerEncoderOptions({8, 2}, 1));
  const auto frozen = freeze(encoder);
  frozen.forward(torch::zeros({1, 2, 8}));
  encoder->reset_parameters();
  EXPECT_ERROR(frozen.forward(torch::zeros({1, 2, 8})), c10::Error, "freeze it again");
}

// As documented in freeze.h: each optimiser that changes versions, and replaced modules.
TEST(Freeze, NoticesStepsAndReplacedModules) {
  Dice dice(11);
  const auto noticed = [&](const auto& change) {
    auto model = any_model(dice, 5);
    const auto ids = any_ids(dice, 1, 4, false);
    const auto frozen = freeze(model);
    frozen.encode(ids);
    change(model);
    EXPECT_ERROR(frozen.encode(ids), c10::Error, "freeze it again");
  };
  const auto steps = [&](auto make) {
    noticed([&](Transformer& model) {
      const auto p = model->named_parameters()["encoder.layers.0.linear1.weight"];
      auto optimizer = make(p);
      p.mutable_grad() = torch::ones_like(p);
      optimizer.step();
    });
  };
  steps([](const torch::Tensor& p) { return FusedAdam({p}); });
  steps([](const torch::Tensor& p) { return FusedAdamW({p}); });
  steps([](const torch::Tensor& p) { return FusedSGD({p}); });
  noticed([](Transformer& model) {
    auto& layer = model->encoder->layers[0]->as<TransformerEncoderLayer>()->linear1;
    auto other = torch::nn::Linear(layer->options);
    model->encoder->layers[0]->as<TransformerEncoderLayer>()->replace_module("linear1", other);
    layer = other;
  });
  // Parts that were added, or exchanged while the program keeps the old ones.
  noticed([](Transformer& model) {
    model->encoder->layers->push_back(TransformerEncoderLayer(model->encoder->options.layer()));
  });
  noticed([](Transformer& model) {
    if (model->decoder->norm.is_empty())
      model->decoder->norm =
          model->decoder->register_module("norm", TransformerNorm(model->options.d_model()));
    else
      model->decoder->unregister_module("norm");
  });
  noticed([](Transformer& model) {
    auto old = model->encoder;
    model->encoder = model->replace_module("encoder", TransformerEncoder(old->options));
    model->encoder->layers = model->encoder->replace_module("layers", old->layers);
  });
}

TEST(Freeze, NoticesOtherOptions) {
  const std::vector<std::pair<const char*, std::function<void(Transformer&)>>> changes = {
      {"src_embedding", [](Transformer& model) { model->src_embedding->options.scale(3.0); }},
      {"encoder", [](Transformer& model) { model->encoder->options.order({0, 0}); }},
      {"encoder.layers.0",
       [](Transformer& model) {
         layer_of(model).options.activation(layer_of(model).options.activation() == Activation::ReLU
                                                ? Activation::GELU
                                                : Activation::ReLU);
       }},
      {"encoder.layers.0",
       [](Transformer& model) {
         layer_of(model).options.norm_first(!layer_of(model).options.norm_first());
       }},
      {"encoder.layers.0.norm1",
       [](Transformer& model) { layer_of(model).norm1->options.eps(0.5); }},
      {"encoder.layers.0.self_attn",
       [](Transformer& model) { layer_of(model).self_attn->options.num_heads(97); }},
  };
  for (const auto& [part, change] : changes) {
    SCOPED_TRACE(part);
    Dice dice(9);
    auto model = any_model(dice, 9);
    const auto ids = any_ids(dice, 2, 5, false);
    const auto frozen = freeze(model);
    frozen.encode(ids);
    change(model);
    EXPECT_ERROR(frozen.encode(ids), c10::Error, std::string("Got other options of ") + part);
  }
}

TEST(Freeze, OutlivesItsSource) {
  Dice dice(6);
  auto model = any_model(dice, 6);
  const auto ids = any_ids(dice, 2, 5, false);
  const auto frozen = freeze(model);
  const auto before = frozen.encode(ids);
  const auto bytes = frozen.bytes();
  EXPECT_GT(bytes.shared, 0);
  EXPECT_EQ(bytes.own, 0);
  model = nullptr;
  EXPECT_TRUE(bit_equal(frozen.encode(ids), before));
  EXPECT_EQ(frozen.bytes().own, bytes.shared);
  EXPECT_EQ(frozen.bytes().shared, 0);
}

TEST(Freeze, CountsACopiedWeightAsItsOwn) {
  Dice dice(8);
  auto model = any_model(dice, 8);
  auto& weight = model->encoder->layers[0]->as<TransformerEncoderLayer>()->linear1->weight;
  weight.set_data(weight.detach().t().contiguous().t());
  const auto size = static_cast<int64_t>(weight.nbytes());
  ASSERT_FALSE(weight.is_contiguous());
  EXPECT_EQ(freeze(model).bytes().own, size);
}

TEST(Freeze, ACloneIsAnotherModel) {
  Dice dice(7);
  auto model = any_model(dice, 7);
  const auto ids = any_ids(dice, 2, 5, false);
  Transformer copy(std::dynamic_pointer_cast<TransformerImpl>(model->clone()));
  const auto frozen = freeze(copy);
  const auto before = frozen.encode(ids);
  model->to(torch::kDouble);
  EXPECT_TRUE(bit_equal(frozen.encode(ids), before));
}

TEST(Freeze, ServesEightThreads) {
  Dice dice(8);
  auto model = any_model(dice, 8);
  const auto frozen = freeze(model, FreezeOptions().gemm(GemmBackend::Native));
  std::vector<torch::Tensor> sources, expected, got(8);
  for (int i = 0; i < 8; ++i) {
    sources.push_back(any_ids(dice, 1 + i, 3 + 5 * i, true));
    expected.push_back(frozen.encode(sources[i], AttentionMask::padding(sources[i], kPad)));
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int again = 0; again < 5; ++again)
        got[i] = frozen.encode(sources[i], AttentionMask::padding(sources[i], kPad));
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(bit_equal(got[i], expected[i])) << i;
}

TEST(Freeze, SaysWhatItIs) {
  std::ostringstream text;
  text << freeze(TransformerEncoder(TransformerEncoderOptions({8, 2}, 1)));
  EXPECT_EQ(text.str(),
            "posenc::FrozenTransformerEncoder(layer=(d_model=8, num_heads=2), num_layers=1)");
}

TEST(FreezeErrors, NamesWhatIsWrong) {
  TransformerEncoder encoder(TransformerEncoderOptions({8, 2}, 1));
  const auto frozen = freeze(encoder);
  EXPECT_ERROR(frozen.forward(torch::zeros({1, 2, 9})), c10::ValueError, "(B, L, 8) on the CPU");
  EXPECT_ERROR(frozen.forward(torch::zeros({1, 2, 8}, torch::kDouble)), c10::TypeError,
               "[FrozenTransformerEncoder] a frozen model takes float32. Got Double");
  Dice dice(9);
  auto model = any_model(dice, 9);
  const auto whole = freeze(model);
  EXPECT_ERROR(whole.encode(torch::zeros({3}, torch::kLong)), c10::ValueError, "src must be ids");
  EXPECT_ERROR(whole.encode(torch::full({1, 3}, 99)), c10::IndexError, "99");
  auto under_padding = any_ids(dice, 2, 3, false);
  under_padding[1][2] = 99;
  EXPECT_ERROR(whole.encode(under_padding, AttentionMask::padding(under_padding, 99)),
               c10::IndexError, "[TokenEmbedding] every id must lie in [0, vocab_size)");
  EXPECT_ERROR(whole.decode(torch::zeros({3}, torch::kLong), torch::zeros({1, 1, 1})),
               c10::ValueError, "tgt must be ids");
  EXPECT_ERROR(whole.decode(torch::zeros({2, 1}, torch::kLong),
                            torch::zeros({1, 1, model->options.d_model()})),
               c10::ValueError, "one batch");
  const auto ids = any_ids(dice, 2, 3, false);
  for (const auto& sizes : {std::pair<int64_t, int64_t>{2, 4}, {3, 3}, {1, 3}})
    EXPECT_ERROR(whole.encode(ids, AttentionMask::key_padding(
                                       torch::zeros({sizes.first, sizes.second}, torch::kBool))),
                 c10::ValueError, "a mask over keys must be (B, S) = [2, 3]");
  encoder->to(torch::kDouble);
  EXPECT_ERROR(freeze(encoder), c10::TypeError, "the model must be float32");
  EXPECT_ERROR(freeze(Transformer(nullptr)), c10::ValueError,
               "the model must not be an empty holder");
}

}  // namespace
}  // namespace posenc::testing
