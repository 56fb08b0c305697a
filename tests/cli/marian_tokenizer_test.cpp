// Tokens added to a tokenizer after training, compared with transformers' MarianTokenizer.
#include "cli/translate/marian_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/error.h"
#include "cli/program.h"
#include "cli/translate/added_tokens.h"
#include "io/files.h"
#include "models/marian/live.h"
#include "support/seed.h"

namespace posenc::testing {
namespace {

using cli::AddedToken;
using cli::AddedTokens;
using cli::MarianTokenizer;
using nlohmann::json;
using Parts = std::vector<std::string>;

AddedTokens tokens(const std::vector<AddedToken>& list) {
  std::map<int64_t, AddedToken> numbered;
  std::unordered_map<std::string, int64_t> ids;
  for (const auto& token : list) {
    ids.emplace(token.text, static_cast<int64_t>(numbered.size()));
    numbered.emplace(ids.at(token.text), token);
  }
  return {numbered, ids};
}

TEST(AddedTokenSplit, TakesTheFirstAndOfThoseTheLongest) {
  const auto some = tokens({{"ab"}, {"abcd"}, {"bc"}, {"漢"}});
  EXPECT_EQ(some.split("xabcdab"), (Parts{"x", "abcd", "ab"}));
  EXPECT_EQ(some.split("abcx"), (Parts{"ab", "cx"}));
  EXPECT_EQ(some.split("xbcab"), (Parts{"x", "bc", "ab"}));
  EXPECT_EQ(some.split("é漢字漢"), (Parts{"é", "漢", "字", "漢"}));
  EXPECT_EQ(some.split(""), Parts{});
  EXPECT_EQ(AddedTokens().split("abc"), Parts{"abc"});
}

TEST(AddedTokenSplit, FlagsTakeSpacesAndWholeWords) {
  const auto some =
      tokens({{"<l>", false, true, false}, {"<r>", false, false, true}, {"<w>", true}});
  EXPECT_EQ(some.split("a \u00a0<l> b"), (Parts{"a", "<l>", " b"}));
  EXPECT_EQ(some.split("a <r> \u3000b"), (Parts{"a ", "<r>", "b"}));
  EXPECT_EQ(some.split("a <w> b<w>"), (Parts{"a ", "<w>", " b<w>"}));
  EXPECT_EQ(some.split("<w>c"), Parts{"<w>c"});
}

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

TEST_F(TokenizerFolder, IsReadAsTransformersReadsIt) {
  const std::string seed = std::to_string(testing::seed(1));
  const auto made = run_program({POSENC_PYTHON, POSENC_TESTS_DIR "/cli/added_tokens.py", "--models",
                                 marian_path("."), "--out", file("made"), "--seed", seed});
  ASSERT_EQ(made.status, 0) << made.err;
  const auto cases = json::parse(read_bytes(file("made/cases.json")));
  ASSERT_GE(cases.size(), 20u);
  for (const auto& one : cases) {
    SCOPED_TRACE(one.at("folder").get<std::string>() + ", seed " + seed);
    const MarianTokenizer tokenizer(one.at("folder"));
    for (std::size_t i = 0; i < one.at("texts").size(); ++i) {
      EXPECT_EQ(json(tokenizer.encode(one["texts"][i].get<std::string>())), one["ids"][i])
          << one["texts"][i];
    }
    for (std::size_t i = 0; i < one.at("outputs").size(); ++i) {
      auto expected = one["translations"][i].get<std::string>();
      for (char& byte : expected) byte = byte == '\n' || byte == '\r' ? ' ' : byte;
      EXPECT_EQ(tokenizer.decode(one["outputs"][i]), expected) << one["outputs"][i];
    }
  }
}

TEST_F(TokenizerFolder, WhatIsNotSupportedIsNamed) {
  const auto folder = copy();
  const auto refusal = [&](const std::string& key, const json& value) -> std::string {
    const auto before = read_bytes(folder + "/tokenizer_config.json");
    configure(key, value);
    std::string text = "nothing was refused";
    try {
      const MarianTokenizer tokenizer(folder);
    } catch (const std::exception& refused) {
      text = cli::message_of(refused);
    }
    write_bytes(folder + "/tokenizer_config.json", before);
    return text;
  };
  EXPECT_CONTAINS(refusal("sp_model_kwargs", {{"enable_sampling", true}}),
                  "tokenizer_config.json: sp_model_kwargs must be empty");
  EXPECT_CONTAINS(refusal("extra_special_tokens", json::array({{{"content", "<x>"}}})),
                  "extra_special_tokens must be a list of strings. Got {\"content\":\"<x>\"}");
  EXPECT_CONTAINS(refusal("extra_special_tokens", 3), "must be a list of tokens. Got 3");
  EXPECT_CONTAINS(refusal("added_tokens_decoder", {{"x", {{"content", "<x>"}}}}),
                  "must have whole numbers below 16777216 as ids");
  EXPECT_CONTAINS(refusal("added_tokens_decoder", {{"-1", {{"content", "<x>"}}}}), "Got -1");
  EXPECT_CONTAINS(refusal("added_tokens_decoder", {{"5", "<x>"}}), "by an object. Got \"<x>\"");
  EXPECT_CONTAINS(
      refusal("added_tokens_decoder", {{"5", {{"content", "<x>"}}}, {"6", {{"content", "<x>"}}}}),
      "must give the token '<x>' one id. Got 5 and 6");
  EXPECT_CONTAINS(refusal("separate_vocabs", "no"), "must be true or false. Got \"no\"");
  EXPECT_CONTAINS(refusal("eos_token", "<none>"), "vocab.json: must have the token <none>");
}

TEST_F(TokenizerFolder, ASettingIsGivenOnce) {
  const auto folder = copy();
  write_bytes(folder + "/tokenizer_config.json", R"({"eos_token": "<s>", "eos_token": "</s>"})");
  try {
    const MarianTokenizer tokenizer(folder);
    FAIL() << "nothing was refused";
  } catch (const std::exception& refused) {
    EXPECT_CONTAINS(cli::message_of(refused), "Got 'eos_token' twice");
  }
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
  EXPECT_PRED_FORMAT2(
      ::testing::IsSubstring,
      "line 2 has the added token '<new>' with id 98, but the model has only 98 tokens",
      result.err);
}

}  // namespace
}  // namespace posenc::testing
