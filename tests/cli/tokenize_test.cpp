#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace posenc::testing {
namespace {

class Tokenize : public InFolder {
 protected:
  // [CLS] text [SEP] of words.
  std::string tokenizer() const {
    return text_file("tokenizer.json", R"({"version": "1.0", "truncation": null, "padding": null,
      "added_tokens": [{"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
                        "normalized": false, "special": true}],
      "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": null,
      "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
      "model": {"type": "WordLevel", "unk_token": "[UNK]",
                "vocab": {"[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "é": 4, "b": 5}}})");
  }
};

TEST_F(Tokenize, WritesTheIdsOfEachLine) {
  const std::string lines = text_file("lines", "É b\n\nx\n");
  const auto result = posenc({"tokenize", tokenizer(), lines});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "2 4 5 3\n2 3\n2 1 3\n");
  EXPECT_EQ(posenc({"tokenize", tokenizer(), lines, "--no-special"}).out, "4 5\n\n1\n");
  EXPECT_EQ(posenc({"tokenize", tokenizer(), lines, "--max-length", "3"}).out,
            "2 4 3\n2 3\n2 1 3\n");
}

TEST_F(Tokenize, WritesObjects) {
  const auto result =
      posenc({"tokenize", "--json", "--pair", tokenizer(), text_file("lines", "é\tb\n")});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto line = nlohmann::json::parse(result.out);
  EXPECT_EQ(line["ids"], nlohmann::json({2, 4, 3, 5, 3}));
  EXPECT_EQ(line["tokens"], nlohmann::json({"[CLS]", "é", "[SEP]", "b", "[SEP]"}));
  EXPECT_EQ(line["type_ids"], nlohmann::json({0, 0, 0, 1, 1}));
  EXPECT_EQ(line["mask"], nlohmann::json({1, 1, 1, 1, 1}));
  EXPECT_EQ(line["offsets"].dump(), "[[0,0],[0,1],[0,0],[0,1],[0,0]]");
}

TEST_F(Tokenize, WritesTheTextOfIds) {
  const std::string lines = text_file("ids", "2 4  5 3\n\n");
  EXPECT_EQ(posenc({"detokenize", tokenizer(), lines}).out, "é b [SEP]\n\n");
  EXPECT_EQ(posenc({"detokenize", tokenizer(), lines, "--keep-special"}).out,
            "[CLS] é b [SEP]\n\n");
}

TEST_F(Tokenize, Refuses) {
  const std::string made = tokenizer();
  const auto stopped = posenc({"tokenize", made, text_file("bytes", "a\n\xC3(\n")});
  EXPECT_EQ(stopped.status, 1);
  EXPECT_EQ(stopped.out, "2 1 3\n");  // of the line before
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "line 2 must be UTF-8. Got another byte at 0",
                      stopped.err);
  expect_refused(posenc({"tokenize", "--pair", made, text_file("one", "a\n")}), "tokenize",
                 "line 1 must have two texts, separated by one tab");
  expect_refused(posenc({"detokenize", made, text_file("words", "2 x\n")}), "detokenize",
                 "line 1 must have ids");
  expect_refused(posenc({"tokenize", text_file("bad.json", "{}"), text_file("line", "a\n")}),
                 "tokenize", "bad.json");
}

}  // namespace
}  // namespace posenc::testing
