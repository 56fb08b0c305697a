// posenc translate with tokens that were added after training, and settings of its tokenizer.
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "models/marian/live.h"
#include "posenc/tokenizers/error.h"
#include "posenc/tokenizers/tensors.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using nlohmann::json;

class TokenizerFolder : public InFolder {
 protected:
  std::string copy() const {
    std::filesystem::copy(marian_path("shared"), file("shared"));
    return file("shared");
  }
  void configure(const std::string& key, const json& value) const {
    const auto path = file("shared") + "/tokenizer_config.json";
    auto all = json::parse(read_bytes(path));
    all[key] = value;
    write_bytes(path, all.dump());
  }
};

TEST_F(TokenizerFolder, WhatIsNotSupportedIsNamed) {
  const auto folder = copy();
  const auto refusal = [&](const std::string& key, const json& value) -> std::string {
    const auto before = read_bytes(folder + "/tokenizer_config.json");
    configure(key, value);
    std::string text = "nothing was refused";
    try {
      Tokenizer::from_folder(folder);
    } catch (const TokenizerError& refused) {
      text = refused.what();
    }
    write_bytes(folder + "/tokenizer_config.json", before);
    return text;
  };
  EXPECT_CONTAINS(refusal("sp_model_kwargs", {{"enable_sampling", true}}),
                  "sp_model_kwargs: must be empty");
  EXPECT_CONTAINS(refusal("extra_special_tokens", 3), "must be a list of tokens. Got 3");
  EXPECT_CONTAINS(refusal("added_tokens_decoder", {{"x", {{"content", "<x>"}}}}),
                  "must have integers as names");
  EXPECT_CONTAINS(refusal("added_tokens_decoder", {{"-1", {{"content", "<x>"}}}}), "Got -1");
  EXPECT_CONTAINS(refusal("added_tokens_decoder", {{"5", "<x>"}}), "Got \"<x>\"");
  EXPECT_CONTAINS(
      refusal("added_tokens_decoder", {{"5", {{"content", "<x>"}}}, {"6", {{"content", "<x>"}}}}),
      "must have one id each. Got \"<x>\" with 5 and 6");
  EXPECT_CONTAINS(refusal("separate_vocabs", "no"), "must be true or false. Got \"no\"");
}

TEST_F(TokenizerFolder, ASettingIsGivenOnce) {
  const auto folder = copy();
  write_bytes(folder + "/tokenizer_config.json", R"({"eos_token": "<s>", "eos_token": "</s>"})");
  EXPECT_CONTAINS(posenc({"translate", "--model", folder}).err,
                  "must have each name once in its settings. Got 'eos_token' twice");
}

// The tokenizer has the token but the model does not; transformers fails with an index out of
// range.
TEST_F(TokenizerFolder, ATokenThatTheModelLacks) {
  const auto folder = copy();
  configure("extra_special_tokens", json::array({"<new>"}));
  const auto lines = text_file("lines", "seven\nsix <new>\n");
  const auto result = posenc({"translate", "--model", folder, lines});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "sieben\n");  // what was read before the error is not lost
  EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                      "line 2 has the token '<new>' with id 98, but the model has only 98 tokens",
                      result.err);
}

}  // namespace
}  // namespace posenc::testing
