// Marian checkpoints of several shapes, made by transformers: compares outputs and searches.

#include "posenc/models/seq2seq.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "models/marian/live.h"
#include "posenc/inference/freeze.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/search_reference.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

class Marian : public ::testing::TestWithParam<std::string> {
 protected:
  static Seq2SeqModel model() { return load_seq2seq(marian_path(GetParam())); }
  static StateDict batch() {
    return load_safetensors(marian_path(GetParam() + ".safetensors")).tensors;
  }
  static AttentionMask padding(const StateDict& in) {
    return AttentionMask::key_padding(in["mask"]);
  }
  static nlohmann::json record() {
    return nlohmann::json::parse(read_bytes(marian_path(GetParam() + ".json")));
  }
};

TEST_P(Marian, LogitsOfTheTargetAreThoseOfTransformers) {
  auto marian = model();
  const auto in = batch();
  const torch::NoGradGuard no_grad;
  const auto logits =
      marian.model->forward(in["src"], in["tgt"], padding(in), AttentionMask::causal());
  EXPECT_TRUE(within(Op::Logits, logits, in["logits"]));
  const auto frozen = freeze(marian.model);
  const auto memory = frozen.encode(in["src"], padding(in));
  const auto of_frozen = frozen.decode(in["tgt"], memory, AttentionMask::causal(), padding(in));
  EXPECT_TRUE(within(Op::Logits, of_frozen, in["logits"])) << "frozen";
}

EarlyStopping early_stopping_of(const nlohmann::json& value) {
  if (value == "never") return EarlyStopping::Never;
  return value == true ? EarlyStopping::WhenFull : EarlyStopping::WhenUnlikely;
}

GenerateOptions options_of(const nlohmann::json& search, const GenerateOptions& base) {
  const auto& end = search.at("forced_eos_token_id");
  const int64_t beams = search.at("num_beams");
  return GenerateOptions(base)
      .max_new_tokens(search.at("max_length").get<int64_t>() - 1)
      .num_beams(beams)
      .num_return_sequences(beams)
      .early_stopping(early_stopping_of(search.at("early_stopping")))
      .length_penalty(search.at("length_penalty"))
      .forced_eos_ids(end.is_null() ? std::vector<int64_t>() : std::vector{end.get<int64_t>()})
      .renormalize(search.at("renormalize_logits"))
      .bad_words_ids({})
      .suppress_tokens(search.at("banned").get<std::vector<int64_t>>());
}

// The results of transformers; greedy searches have no scores.
Found found_of(const nlohmann::json& search) {
  Found all;
  for (const auto& source : search.at("tokens")) {
    all.emplace_back();
    for (const auto& tokens : source) {
      const size_t b = all.size() - 1, i = all.back().size();
      const double score = search.contains("scores") ? search["scores"][b][i].get<double>() : NAN;
      all.back().push_back({tokens.get<std::vector<int64_t>>(), score});
    }
  }
  return all;
}

TEST_P(Marian, EverySearchFindsTheTokensAndScoresOfTransformers) {
  auto marian = model();
  const auto frozen = freeze(marian.model);
  const auto in = batch();
  std::set<std::vector<int64_t>> different;
  const auto searches = record().at("searches");
  for (const auto& search : searches) {
    auto settings = search;
    settings.erase("tokens"), settings.erase("scores");
    SCOPED_TRACE(settings.dump());
    const auto options = options_of(search, marian.generation);
    SearchReference reference(marian.model, in["src"], padding(in), options, Op::Score);
    const auto found = generate(*marian.model, in["src"], padding(in), options);
    const auto expected = found_of(search);
    EXPECT_TRUE(found_the_same(found, expected, reference));
    EXPECT_TRUE(
        found_the_same(generate(frozen, in["src"], padding(in), options), expected, reference));
    for (const auto& all : found)
      for (const auto& one : all) different.insert(one.tokens);
  }
  EXPECT_GT(different.size(), 50u) << "equal targets would prove little";
}

INSTANTIATE_TEST_SUITE_P(Made, Marian, ::testing::Values("shared", "separate", "untied", "archive"),
                         [](const auto& info) { return info.param; });

TEST(MarianSettings, AreThoseOfTheFolder) {
  const auto shared = load_seq2seq(marian_path("shared"));
  EXPECT_FALSE(shared.model->is_training());
  EXPECT_EQ(shared.model->options.tie(), Tying::ThreeWay);
  EXPECT_EQ(shared.generation.num_beams(), 3);
  EXPECT_EQ(shared.generation.max_length(), 30);
  EXPECT_TRUE(shared.generation.renormalize());
  EXPECT_EQ(shared.generation.bad_words_ids(), (std::vector<std::vector<int64_t>>{{shared.pad}}));
  EXPECT_EQ(shared.generation.bos_id(), shared.pad);
  EXPECT_EQ(shared.generation.early_stopping(), EarlyStopping::WhenUnlikely);
  const auto separate = load_seq2seq(marian_path("separate"));
  EXPECT_EQ(separate.model->options.tie(), Tying::DecoderOutput);
  EXPECT_EQ(separate.generation.early_stopping(), EarlyStopping::WhenFull);
  EXPECT_EQ(separate.generation.length_penalty(), 0.6);
  const auto untied = load_seq2seq(marian_path("untied"));
  EXPECT_EQ(untied.model->options.tie(), Tying::None);
  EXPECT_EQ(untied.generation.max_new_tokens(), 25);
  EXPECT_TRUE(untied.generation.forced_eos_ids().empty());
  const auto archive = load_seq2seq(marian_path("archive"));  // settings are in config.json
  EXPECT_EQ(archive.generation.early_stopping(), EarlyStopping::Never);
  EXPECT_EQ(archive.generation.num_beams(), 2);
  EXPECT_FALSE(archive.generation.max_new_tokens() || archive.generation.max_length())
      << "of a folder that names none";
}

// The names that all classes know, and fewer layers than the file has.
TEST(MarianSettings, MayHaveOtherNames) {
  const TempDir folder;
  std::filesystem::copy(marian_path("shared"), folder.path(),
                        std::filesystem::copy_options::recursive);
  auto config = nlohmann::json::parse(read_bytes(folder / "config.json"));
  const auto model = load_seq2seq(folder.path().string()).model;
  const auto rename = [&](const char* from, const char* to) {
    config[to] = config[from];
    config.erase(from);
  };
  rename("d_model", "hidden_size");
  rename("encoder_attention_heads", "num_attention_heads");
  rename("encoder_layers", "num_hidden_layers");
  config["num_hidden_layers"] = 1;
  config["decoder_layers"] = 1;
  write_bytes(folder / "config.json", config.dump());
  const auto shorter = load_seq2seq(folder.path().string()).model;
  EXPECT_EQ(shorter->options.d_model(), model->options.d_model());
  EXPECT_EQ(shorter->options.num_heads(), model->options.num_heads());
  EXPECT_EQ(shorter->options.num_encoder_layers(), 1);
  EXPECT_EQ(shorter->options.num_decoder_layers(), 1);
  EXPECT_TRUE(bit_equal(shorter->named_parameters()["encoder.layers.0.linear1.weight"],
                        model->named_parameters()["encoder.layers.0.linear1.weight"]));
}

}  // namespace
}  // namespace posenc::testing
