// Decoder-only language models against transformers: tests/models/decoder/make_models.py.
//
// posenc-budget: the same models computed, searched, trained, packed and adapted

#include "posenc/models/decoder.h"

#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <string>
#include <vector>

#include "posenc/models/adapter_set.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/generation_config.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/train/trainer.h"
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
  const auto labels = ids.masked_fill(mask.eq(0), -100);
  std::vector<float> losses;
  for (int step = 0; step < 10; ++step) {
    adam.zero_grad();
    const auto logits = model_->forward(ids, DecoderInputs().attention_mask(mask)).logits;
    const auto loss = functional::causal_cross_entropy(logits, labels);
    loss.backward();
    adam.step();
    losses.push_back(loss.item<float>());
  }
  EXPECT_TRUE(within(Op::Losses, torch::tensor(losses), found_["losses"]));
}

TEST_P(TrainedDecoder, LearnsTheSameFromTheTrainer) {
  std::vector<TokenPair> texts;
  for (int64_t row = 0; row < found_["batch"].size(0); ++row) {
    const auto own = found_["batch"][row].masked_select(found_["mask"][row].ne(0));
    texts.push_back({{}, {own.data_ptr<int64_t>(), own.data_ptr<int64_t>() + own.numel()}});
  }
  PairLoader loader(texts, PairLoaderOptions().pad_id(-1));
  FusedAdam adam(model_->parameters(), 1e-2);
  const auto loss = [&](const PairBatch& batch) {
    const auto mask = batch.tgt.ne(batch.pad_id);
    return functional::causal_cross_entropy(
        model_->forward(batch.tgt, DecoderInputs().attention_mask(mask)).logits,
        batch.tgt.masked_fill(~mask, -100));
  };
  std::vector<float> losses;
  const auto report = [&](const TrainingProgress& progress) {
    losses.push_back(static_cast<float>(progress.loss));
  };
  Trainer(TrainingRun{*model_, &adam}, loader, loss,
          TrainerOptions(10).report_every(1).report(report))
      .train();
  EXPECT_TRUE(within(Op::Losses, torch::tensor(losses), found_["losses"]));
}

// A run of an adapter that is stopped and resumed is one that never was.
TEST(LiveDecoderFolder, AnAdapterIsTrainedByTheTrainer) {
  const std::vector<TokenPair> texts = {{{}, {3, 4, 5, 6}}, {{}, {7, 8, 3}}, {{}, {9, 3, 5, 4, 4}}};
  const TempDir out;
  std::vector<float> losses;
  const auto trained = [&](const std::vector<int64_t>& until, const char* name) {
    torch::manual_seed(1);
    Decoder model = load_decoder(path_of("qwen2"));
    const auto before = model->lm_head->effective_weight().detach().clone();
    const LoraTraining tuned =
        add_lora(model, LoraConfig(2).targets({"q_proj", "down_proj"}).dropout(0.2));
    PairLoader loader(texts, PairLoaderOptions().pad_id(-1).max_rows(2));
    FusedAdamW adam(tuned.parameters(), 1e-2);
    const auto loss = [&](const PairBatch& batch) {
      const auto mask = batch.tgt.ne(batch.pad_id);
      return functional::causal_cross_entropy(
          model->forward(batch.tgt, DecoderInputs().attention_mask(mask)).logits,
          batch.tgt.masked_fill(~mask, -100));
    };
    const auto report = [&](const TrainingProgress& one) {
      losses.push_back(static_cast<float>(one.loss));
    };
    const auto options = TrainerOptions(20)
                             .report_every(20)
                             .report(report)
                             .checkpoint(out / name)
                             .checkpoint_every(7);
    for (const int64_t end : until) {
      Trainer trainer(TrainingRun{*tuned.module(), &adam}, loader, loss, options);
      if (end != until.front()) {
        for (auto& tensor : tuned.parameters()) tensor.detach().fill_(9);
        trainer.resume(out / name);
      }
      trainer.train(end);
    }
    EXPECT_TRUE(model->is_training());
    EXPECT_TRUE(bit_equal(model->lm_head->effective_weight(), before));
    return tuned.adapter();
  };
  const LoraAdapter whole = trained({20}, "whole"), parts = trained({7, 20}, "parts");
  ASSERT_EQ(whole.tensors.size(), 16U);
  for (const auto& item : whole.tensors)
    EXPECT_TRUE(bit_equal(item.value(), parts.tensors[item.key()])) << item.key();
  EXPECT_LT(losses.back(), 3.0F);
}

class PackedDecoder : public LiveDecoder {};

TEST_P(PackedDecoder, LearnsFromSequencesInOneRowAsTransformersDoes) {
  const auto ids = found_["packed.input_ids"], labels = found_["packed.labels"];
  const auto inputs = DecoderInputs().position_ids(found_["packed.position_ids"]);
  EXPECT_TRUE(within(Op::Logits, model_->forward(ids, inputs).logits, found_["packed.logits"]));
  EXPECT_TRUE(
      within(Op::Logits, freeze(model_).forward(ids, inputs).logits, found_["packed.logits"]));
  FusedAdamW adam(model_->parameters(), 1e-2);
  std::vector<float> losses;
  for (int step = 0; step < 10; ++step) {
    adam.zero_grad();
    const auto loss = functional::causal_cross_entropy(model_->forward(ids, inputs).logits, labels);
    loss.backward();
    adam.step();
    losses.push_back(loss.item<float>());
  }
  EXPECT_TRUE(within(Op::Losses, torch::tensor(losses), found_["packed.losses"]));
}

INSTANTIATE_TEST_SUITE_P(Models, PackedDecoder,
                         ::testing::Values("llama", "mistral", "qwen2", "gpt2"),
                         [](const auto& test) { return std::string(test.param); });

// Sequences of many lengths, which are computed in several groups.
TEST_P(LiveDecoder, PackedSequencesHaveTheResultsThatTheyHaveAlone) {
  const auto ids = torch::randint(3, 61, {2, 40}, torch::kLong);
  const std::vector<std::vector<int64_t>> lengths = {{1, 20, 19}, {3, 37}};
  const auto check = [&](auto&& forward) {
    std::vector<at::Tensor> positions, logits, hidden;
    for (int64_t row = 0; row < 2; ++row) {
      int64_t begin = 0;
      for (const int64_t length : lengths[static_cast<std::size_t>(row)]) {
        positions.push_back(torch::arange(length));
        const auto out = forward(ids.narrow(0, row, 1).narrow(1, begin, length), DecoderInputs());
        logits.push_back(out.logits[0]);
        hidden.push_back(out.last_hidden_state[0]);
        begin += length;
      }
    }
    const auto found =
        forward(ids, DecoderInputs().position_ids(torch::cat(positions).view({2, 40})));
    EXPECT_TRUE(within(Op::Logits, found.logits, torch::cat(logits).view({2, 40, -1})));
    EXPECT_TRUE(within(Op::Logits, found.last_hidden_state, torch::cat(hidden).view({2, 40, -1})));
  };
  check(
      [&](const auto& rows, const DecoderInputs& inputs) { return model_->forward(rows, inputs); });
  const FrozenDecoder frozen = freeze(model_);
  check(
      [&](const auto& rows, const DecoderInputs& inputs) { return frozen.forward(rows, inputs); });
}

TEST(LiveDecoderFolder, PositionsCountTheTokensOfSequences) {
  const Decoder model = load_decoder(path_of("llama"));
  const auto ids = torch::tensor({{3, 4, 5, 6}}), right = torch::tensor({{0, 1, 0, 1}});
  const auto refused = [&](const DecoderInputs& inputs, const char* text) {
    EXPECT_ERROR(Decoder(model)->forward(ids, inputs), c10::ValueError, text);
    EXPECT_ERROR(freeze(model).forward(ids, inputs), c10::ValueError, text);
  };
  const auto at = [](const at::Tensor& positions) {
    return DecoderInputs().position_ids(positions);
  };
  refused(at(torch::tensor({{1, 2, 3, 4}})), "must count the tokens of each sequence from 0");
  refused(at(torch::tensor({{0, 1, 3, 0}})), "from 0. Got others in row 0");
  refused(at(torch::tensor({0, 1, 2, 3})), "position_ids must be [1, 4]. Got [4]");
  refused(at(right).attention_mask(torch::ones({1, 4})), "must be without attention_mask");
  refused(at(right).last_logits_only(true), "must be without attention_mask and last_logits_only");
  EXPECT_ERROR(Decoder(model)->forward(ids, at(right.to(torch::kFloat))), c10::TypeError,
               "position_ids must be integers");
  auto caches = model->make_caches(1, 8);
  EXPECT_ERROR(Decoder(model)->step(ids, caches, at(right)), c10::ValueError,
               "position_ids are not for step()");
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
