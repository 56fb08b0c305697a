// Frozen encoders of whole models with windows, in any dtype of weights and products, give the same
// bits with any number of threads, and with every instruction set that rounds alike; so do the
// logits of decoders, and the tokens and the scores of their beams and of a Transformer's. The set
// is chosen once in a process, so this program is started again with each.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "inference/models.h"
#include "kernels/dispatch.h"
#include "kernels/isa.h"
#include "modules/drawn_module.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/frozen_encoder.h"
#include "support/temp_dir.h"
#include "support/threads.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

constexpr const char* kResult = "POSENC_ENCODER_BITS";  // the file that a started process writes
constexpr int kModels = 6, kDecoders = 8;

// A model whose layers differ in their windows, up to a few blocks of queries wide.
nlohmann::json any_config(Dice& dice, int number) {
  const int64_t heads = dice(1, 3), head_dim = 8 * dice(1, 4);
  nlohmann::json config = {{"vocab_size", 50},
                           {"hidden_size", heads * head_dim},
                           {"num_attention_heads", heads},
                           {"num_hidden_layers", dice(2, 4)},
                           {"intermediate_size", dice(3, 50)},
                           {"max_position_embeddings", 512},
                           {"pad_token_id", 0}};
  if (number % 2 == 0) {
    config["model_type"] = "modernbert";
    config["global_attn_every_n_layers"] = dice(2, 3);
    config["local_attention"] = 2 * dice(0, 70);
  } else {
    config["model_type"] = "gemma3_text";
    config["head_dim"] = head_dim;
    config["num_key_value_heads"] = 1;
    config["query_pre_attn_scalar"] = head_dim;
    config["use_bidirectional_attention"] = dice.coin();
    config["sliding_window"] = dice(2, 140);
    config["sliding_window_pattern"] = dice(2, 3);
  }
  return config;
}

uint64_t fnv(const torch::Tensor& values) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto* const bytes = static_cast<const unsigned char*>(values.const_data_ptr());
  for (size_t i = 0; i < values.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

std::vector<FreezeOptions> every_dtype() {
  std::vector<FreezeOptions> all;
  for (const auto weights : {WeightDtype::Float32, WeightDtype::Int8, WeightDtype::BFloat16})
    for (const auto compute : {ComputeDtype::Float32, ComputeDtype::BFloat16})
      all.push_back(FreezeOptions().weights(weights).compute(compute));
  return all;
}

// The bits of a model for sequences of unequal lengths, with padding on the right.
std::string bits_of(int number) {
  Dice dice(300 + number);
  torch::manual_seed(seed(300 + number));
  const nlohmann::json config = any_config(dice, number);
  Encoder encoder(encoder_options_from_hf(config.dump()));
  encoder->eval();
  const int64_t batch = dice(1, 4), length = dice(60, 260);
  auto tokens = torch::ones({batch, length}, torch::kLong);
  for (int64_t b = 1; b < batch; ++b) {
    const int64_t dropped = dice(0, length - 1);
    tokens[b].narrow(0, length - dropped, dropped).fill_(0);
  }
  const auto ids = torch::randint(1, 50, {batch, length}) * tokens;
  std::string line = config.dump();
  for (const FreezeOptions& options : every_dtype()) {
    const auto frozen = freeze(encoder, options);
    std::set<uint64_t> hashes;
    for (const int threads : {1, 2, 3, 5}) {
      const Threads guard(threads);
      const auto out =
          frozen.forward(ids, EncoderInputs().attention_mask(tokens)).last_hidden_state;
      EXPECT_TRUE(out.isfinite().all().item<bool>());
      hashes.insert(fnv(out.contiguous()));
    }
    EXPECT_EQ(hashes.size(), 1U) << "threads change the bits of " << line;
    line += " " + std::to_string(*hashes.begin());
  }
  return line + "\n";
}

// The tokens and the scores of three beams.
std::string found_of(const std::string& name, const Transformer& model, const torch::Tensor& src,
                     const AttentionMask& mask) {
  const auto options = GenerateOptions(kBegin, kEnd).num_beams(3).max_new_tokens(12);
  std::string line;
  for (const FreezeOptions& one : every_dtype()) {
    const auto frozen = freeze(model, FreezeOptions(one).gemm(GemmBackend::Native));
    std::set<std::string> all;
    for (const int threads : {1, 2, 3}) {
      const Threads guard(threads);
      std::ostringstream found;
      for (const auto& of_source : generate(frozen, src, mask, options))
        for (const Hypothesis& one : of_source) found << one.tokens << std::hexfloat << one.score;
      all.insert(found.str());
    }
    EXPECT_EQ(all.size(), 1U) << "threads change what is found by " << name;
    line += *all.begin() + " ";
  }
  return line + "\n";
}

// For sources of unequal lengths.
std::string found_by(int number) {
  Dice dice(400 + number);
  const auto model = any_model(dice, static_cast<unsigned>(400 + number));
  const auto src = any_ids(dice, dice(1, 7), dice(2, 30), true);
  return found_of(std::to_string(number), model, src, AttentionMask::padding(src, kPad));
}

// For sounds.
std::string found_by_hearing() {
  const auto model = tiny_model(tiny_hearing());
  return found_of("a model of sound", model, tiny_sounds(3), {});
}

// A decoder-only language model with softcaps, squares of ReLU, clipped projections, ALiBi, or one
// of the norms of queries and keys.
nlohmann::json any_decoder(Dice& dice, int number) {
  static const char* const kTypes[] = {"gemma2", "nemotron", "olmo",     "bloom",
                                       "olmo2",  "cohere",   "stablelm", "hunyuan_v1_dense"};
  const int64_t heads = dice(1, 3), head_dim = 8 * dice(1, 3), layers = dice(1, 3);
  nlohmann::json config = {{"model_type", kTypes[number]},
                           {"vocab_size", 50},
                           {"hidden_size", heads * head_dim},
                           {"num_attention_heads", heads},
                           {"n_head", heads},
                           {"num_key_value_heads", number % 2 == 0 ? heads : 1},
                           {"head_dim", head_dim},
                           {"num_hidden_layers", layers},
                           {"n_layer", layers},
                           {"intermediate_size", dice(3, 50)},
                           {"max_position_embeddings", 512},
                           {"sliding_window", dice(2, 20)},
                           {"query_pre_attn_scalar", head_dim},
                           {"clip_qkv", 0.5},
                           {"use_qk_norm", true},
                           {"qk_layernorm", true},
                           {"tie_word_embeddings", true}};
  if (number == 0)
    config.update({{"attn_logit_softcapping", 0.5}, {"final_logit_softcapping", 2.0}});
  return config;
}

// The bits of its logits for a prompt, and what it finds for prompts of unequal lengths.
std::string bits_of_decoder(int number) {
  Dice dice(500 + number);
  const nlohmann::json config = any_decoder(dice, number);
  Decoder decoder = drawn(Decoder(decoder_options_from_hf(config.dump())));
  std::vector<std::vector<int64_t>> prompts(static_cast<std::size_t>(dice(1, 7)));
  for (auto& prompt : prompts)
    for (int64_t i = dice(1, 70); i > 0; --i) prompt.push_back(dice(0, 49));
  const auto ids = torch::tensor(prompts.front()).unsqueeze(0);
  const auto options = GenerateOptions(0, kEnd).num_beams(2).max_new_tokens(8);
  std::string line = config.dump();
  for (const FreezeOptions& one : every_dtype()) {
    const auto frozen = freeze(decoder, one);
    std::set<std::string> all;
    for (const int threads : {1, 2, 3, 4}) {
      const Threads guard(threads);
      std::ostringstream found;
      found << fnv(frozen.forward(ids).logits.contiguous());
      for (const auto& of_prompt : generate(frozen, prompts, options))
        for (const Hypothesis& best : of_prompt)
          found << best.tokens << std::hexfloat << best.score;
      all.insert(found.str());
    }
    EXPECT_EQ(all.size(), 1U) << "threads change the bits of " << line;
    line += " " + *all.begin();
  }
  return line + "\n";
}

// What a started process runs; in other processes it is skipped as disabled.
TEST(EncoderBits, DISABLED_OfThisProcess) {
  const char* const file = std::getenv(kResult);
  if (file == nullptr) GTEST_SKIP() << "run by EncoderBits";
  const torch::NoGradGuard no_grad;
  std::string all;
  for (int number = 0; number < kModels; ++number) all += bits_of(number) + found_by(number);
  for (int number = 0; number < kDecoders; ++number) all += bits_of_decoder(number);
  all += found_by_hearing();
  std::ofstream(file) << all;
}

std::string bits_with(const std::string& set, const TempDir& folder) {
  const std::string file = folder / set, log = file + ".log";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX OMP_WAIT_POLICY=PASSIVE POSENC_ISA=" + set +
      " " + kResult + "='" + file + "' '" + program +
      "' --gtest_filter=EncoderBits.DISABLED_OfThisProcess"
      " --gtest_also_run_disabled_tests > '" +
      log + "' 2>&1";
  std::ifstream said;
  const bool succeeds = std::system(command.c_str()) == 0;
  said.open(log);
  EXPECT_TRUE(succeeds) << set << ": " << std::string(std::istreambuf_iterator<char>(said), {});
  std::ifstream bits(file);
  return {std::istreambuf_iterator<char>(bits), {}};
}

TEST(EncoderBits, AreThoseOfEverySetAndNumberOfThreads) {
  const TempDir folder;
  std::string of_fused, of_others;
  for (const std::string& set : kernels::set_names()) {
    const std::string bits = bits_with(set, folder);
    ASSERT_FALSE(bits.empty()) << set;
    std::string& expected = is_fused(*kernels::find(set)) ? of_fused : of_others;
    if (expected.empty()) expected = bits;
    EXPECT_EQ(bits, expected) << set;
  }
}

}  // namespace
}  // namespace posenc::testing
