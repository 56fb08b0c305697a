// Decoder-only language models against transformers: tests/models/decoder/make_models.py.

#include "posenc/models/decoder.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <string>
#include <vector>

#include "posenc/models/adapter_set.h"
#include "posenc/models/generation_config.h"
#include "posenc/weights/load.h"
#include "support/compare.h"
#include "support/temp_dir.h"

namespace posenc::testing {
namespace {

using Ids = std::vector<int64_t>;

constexpr int kPrompts = 5;

std::string path_of(const std::string& name) { return POSENC_LIVE_DIR "/decoder/" + name; }

Ids ids_of(const torch::Tensor& row) {
  const auto* const first = row.const_data_ptr<int64_t>();
  return {first, first + row.numel()};
}

// A model, and what transformers has found of it.
class LiveDecoder : public ::testing::TestWithParam<const char*> {
 protected:
  Decoder model_ = load_decoder(path_of(GetParam()));
  StateDict found_ = load_tensors(path_of(GetParam() + std::string(".safetensors")));

  const torch::Tensor& found(const std::string& name, int i) const {
    return found_[name + "." + std::to_string(i)];
  }
  std::vector<Ids> prompts() const {
    std::vector<Ids> all;
    for (int i = 0; i < kPrompts; ++i) all.push_back(ids_of(found("prompt", i)));
    return all;
  }
};

struct Batch {
  torch::Tensor ids, mask;
};

// With ids outside the vocabulary at padding, before the tokens or after them, or at both sides.
Batch batch_of(const std::vector<Ids>& rows, double share_before, int64_t more = 0) {
  int64_t longest = 0;
  for (const Ids& row : rows) longest = std::max(longest, static_cast<int64_t>(row.size()));
  longest += more;
  const auto count = static_cast<int64_t>(rows.size());
  Batch batch = {torch::full({count, longest}, 99999, torch::kLong),
                 torch::zeros({count, longest}, torch::kLong)};
  for (int64_t i = 0; i < count; ++i) {
    const auto length = static_cast<int64_t>(rows[i].size());
    const auto first = static_cast<int64_t>(share_before * static_cast<double>(longest - length));
    batch.ids[i].narrow(0, first, length).copy_(torch::tensor(rows[i]));
    batch.mask[i].narrow(0, first, length).fill_(1);
  }
  return batch;
}

TEST_P(LiveDecoder, HasTheLogitsOfTransformers) {
  const torch::NoGradGuard no_grad;
  for (int i = 0; i < kPrompts; ++i) {
    const auto out =
        model_->forward(found("prompt", i), DecoderInputs().output_hidden_states(true));
    EXPECT_TRUE(within(Op::Logits, out.logits, found("logits", i))) << i;
    EXPECT_TRUE(within(Op::Logits, out.last_hidden_state, found("hidden", i))) << i;
    EXPECT_TRUE(bit_equal(out.hidden_states.back(), out.last_hidden_state));
    const auto last = model_->forward(found("prompt", i), DecoderInputs().last_logits_only(true));
    EXPECT_TRUE(
        within(Op::Logits, last.logits, found("logits", i).narrow(1, out.logits.size(1) - 1, 1)));
  }
}

TEST_P(LiveDecoder, ARowIsComputedAsIfAlone) {
  const torch::NoGradGuard no_grad;
  for (const double share : {0.0, 1.0, 0.5}) {
    const Batch batch = batch_of(prompts(), share, 2);
    const auto out = model_->forward(
        batch.ids, DecoderInputs().attention_mask(batch.mask).output_hidden_states(true));
    EXPECT_TRUE(out.logits.isfinite().all().item<bool>());
    const auto last = model_->forward(
        batch.ids,
        DecoderInputs().attention_mask(batch.mask.to(torch::kBool)).last_logits_only(true));
    for (int i = 0; i < kPrompts; ++i) {
      const auto tokens = batch.mask[i].nonzero().squeeze(1);
      EXPECT_TRUE(within(Op::Logits, out.logits[i].index_select(0, tokens), found("logits", i)[0]))
          << i;
      EXPECT_TRUE(within(Op::Logits, out.last_hidden_state[i].index_select(0, tokens),
                         found("hidden", i)[0]));
      EXPECT_TRUE(within(Op::Logits, out.hidden_states.back()[i].index_select(0, tokens),
                         found("hidden", i)[0]));
      EXPECT_TRUE(within(Op::Logits, last.logits[i][0], found("logits", i)[0][-1])) << i;
    }
  }
}

// Those whose frequencies do not depend on the length of a call.
class FixedDecoder : public LiveDecoder {};

TEST_P(FixedDecoder, StepsGiveTheLogitsOfForward) {
  const Batch batch = batch_of(prompts(), 1.0);
  const int64_t columns = batch.ids.size(1);
  const auto whole = model_->forward(batch.ids, DecoderInputs().attention_mask(batch.mask));
  for (const int64_t most : {1, 2, 5}) {
    auto caches = model_->make_caches(kPrompts, columns);
    std::vector<torch::Tensor> logits;
    for (int64_t at = 0; at < columns; at += most) {
      const int64_t count = std::min(most, columns - at);
      const auto inputs = DecoderInputs().attention_mask(batch.mask.narrow(1, 0, at + count));
      if (batch.mask.narrow(1, 0, at + count).sum(1).min().item<int64_t>() == 0) {
        // A mask has a token in each row: the first step reads as many columns as that needs.
        continue;
      }
      const int64_t first = caches.front().length();
      logits.push_back(
          model_->step(batch.ids.narrow(1, first, at + count - first), caches, inputs).logits);
    }
    const auto all = torch::cat(logits, 1);
    for (int i = 0; i < kPrompts; ++i) {
      const auto tokens = batch.mask[i].nonzero().squeeze(1);
      EXPECT_TRUE(within(Op::Logits, all[i].index_select(0, tokens),
                         whole.logits[i].index_select(0, tokens).detach()))
          << most << " " << i;
    }
  }
}

// The tokens up to the end, after which transformers puts the padding, or in beams the end.
Ids tokens_of(const torch::Tensor& row, std::size_t length) {
  Ids all = ids_of(row);
  for (std::size_t i = length; i < all.size(); ++i) EXPECT_TRUE(all[i] == 0 || all[i] == 2);
  all.resize(std::min(length, all.size()));
  return all;
}

TEST_P(LiveDecoder, SearchesFindTheTokensOfTransformers) {
  GenerateOptions greedy(0, 2);
  const std::pair<const char*, GenerateOptions> searches[] = {
      {"greedy", GenerateOptions(greedy).max_new_tokens(14)},
      {"beams", GenerateOptions(greedy)
                    .max_new_tokens(9)
                    .num_beams(3)
                    .num_return_sequences(2)
                    .length_penalty(0.7)},
      {"lengths", GenerateOptions(greedy)
                      .max_new_tokens(std::nullopt)
                      .max_length(16)
                      .min_length(11)
                      .repetition_penalty(1.7)},
      {"settings", GenerateOptions(greedy)
                       .max_new_tokens(10)
                       .num_beams(4)
                       .early_stopping(EarlyStopping::WhenFull)
                       .no_repeat_ngram_size(2)
                       .bad_words_ids({{5}, {7, 8}})
                       .forced_eos_ids({2})
                       .eos_ids({2, 11})
                       .begin_suppress_tokens({4})
                       .forced_bos_id(9)
                       .renormalize(true)}};
  for (const auto& [name, options] : searches) {
    const auto all = generate(model_, prompts(), options);
    ASSERT_EQ(all.size(), kPrompts);
    for (int i = 0; i < kPrompts; ++i) {
      const auto& rows = all[i];
      ASSERT_EQ(static_cast<int64_t>(rows.size()), found(name, i).size(0));
      for (std::size_t row = 0; row < rows.size(); ++row) {
        EXPECT_EQ(rows[row].tokens,
                  tokens_of(found(name, i)[static_cast<int64_t>(row)], rows[row].tokens.size()))
            << name << " " << i;
        if (options.num_beams() > 1) {
          EXPECT_NEAR(
              rows[row].score,
              found(std::string(name) + ".scores", i)[static_cast<int64_t>(row)].item<double>(),
              2e-5)
              << name << i;
        }
      }
    }
  }
}

TEST_P(FixedDecoder, ScoresAreTheLogProbabilitiesOfTransformers) {
  const auto values = score(model_, prompts());
  for (int i = 0; i < kPrompts; ++i)
    EXPECT_TRUE(within(Op::Scores, torch::tensor(values[i], torch::kFloat), found("score", i)))
        << i;
}

INSTANTIATE_TEST_SUITE_P(Models, LiveDecoder,
                         ::testing::Values("llama", "dynamic", "longrope", "mistral", "qwen2",
                                           "qwen3", "gemma3_text", "bloom", "mpt", "phi3"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(Models, FixedDecoder,
                         ::testing::Values("llama", "mistral", "qwen2", "qwen3", "gemma3_text",
                                           "bloom", "mpt"),
                         [](const auto& test) { return std::string(test.param); });

class TrainedDecoder : public LiveDecoder {};

TEST_P(TrainedDecoder, LearnsAsTransformersDoes) {
  const auto &ids = found_["batch"], &mask = found_["mask"];
  model_->train();
  torch::optim::Adam adam(model_->parameters(), torch::optim::AdamOptions(1e-2));
  const auto labels = ids.masked_fill(mask.eq(0), -100).slice(1, 1).reshape(-1);
  std::vector<float> losses;
  for (int step = 0; step < 10; ++step) {
    adam.zero_grad();
    const auto logits = model_->forward(ids, DecoderInputs().attention_mask(mask)).logits;
    const auto loss =
        torch::nn::functional::cross_entropy(logits.slice(1, 0, -1).flatten(0, 1), labels);
    loss.backward();
    adam.step();
    losses.push_back(loss.item<float>());
  }
  EXPECT_TRUE(within(Op::Losses, torch::tensor(losses), found_["losses"]));
}

INSTANTIATE_TEST_SUITE_P(Models, TrainedDecoder, ::testing::Values("llama", "qwen2", "bloom"),
                         [](const auto& test) { return std::string(test.param); });

TEST(LiveDecoderFolder, TiedTablesAreOneParameterAlsoInAClone) {
  const Decoder model = load_decoder(path_of("qwen2"));
  EXPECT_TRUE(model->options.tied());
  for (const auto& item : model->named_parameters()) EXPECT_NE(item.key(), "lm_head.weight");
  const auto copy = std::dynamic_pointer_cast<DecoderImpl>(model->clone());
  EXPECT_TRUE(copy->lm_head->effective_weight().is_same(copy->model->embeddings->tokens->weight));
  EXPECT_FALSE(copy->lm_head->effective_weight().is_same(model->lm_head->effective_weight()));
}

TEST(LiveDecoderFolder, SettingsOfGenerateAreThoseOfTheFolder) {
  const GenerateOptions options = load_generation_config(path_of("llama"), R"({"num_beams": 2})");
  EXPECT_EQ(options.eos_ids(), Ids{2});
  EXPECT_EQ(options.num_beams(), 2);
  EXPECT_ERROR(load_generation_config(path_of("llama"), R"({"encoder_repetition_penalty": 2.0})"),
               c10::ValueError, "encoder_repetition_penalty");
}

TEST(LiveDecoderFolder, AnAdapterThatWasTrainedIsMergedAndSwitched) {
  const TempDir out;
  const Decoder model = load_decoder(path_of("llama")), other = load_decoder(path_of("llama"));
  const auto ids = torch::tensor({{3, 4, 5, 6}});
  const auto logits = [&](const Decoder& of) {
    const torch::NoGradGuard no_grad;
    return Decoder(of)->forward(ids).logits;
  };
  const torch::Tensor base = logits(model), head = model->lm_head->weight.detach().clone();
  const LoraTraining tuned = add_lora(model, LoraConfig(4).targets({"q_proj", "lm_head"}));
  torch::optim::Adam adam(tuned.parameters(), torch::optim::AdamOptions(0.1));
  for (int step = 0; step < 3; ++step) {
    adam.zero_grad();
    Decoder(model)->forward(ids).logits.square().mean().backward();
    adam.step();
  }
  const torch::Tensor trained = logits(model);
  EXPECT_FALSE(within(Op::Logits, trained, base));
  EXPECT_TRUE(bit_equal(model->lm_head->weight, head));
  save_adapter(tuned.adapter(), out / "adapter", path_of("llama"));
  const auto load = LoadOptions().adapters({{out / "adapter", 1.0}});
  EXPECT_TRUE(within(Op::Logits, logits(load_decoder(path_of("llama"), load)), trained));
  AdapterSet set(other);
  set.add("mine", load_adapter(out / "adapter"));
  set.activate({"mine"});
  EXPECT_TRUE(within(Op::Logits, logits(other), trained));
  set.deactivate();
  EXPECT_TRUE(bit_equal(logits(other), base));
}

}  // namespace
}  // namespace posenc::testing
