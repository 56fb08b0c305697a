// What posenc translate refuses, with the reason.

#include "cli/translate_program.h"
#include "posenc/tokenizers/tensors.h"
#include "posenc/weights/safetensors.h"

namespace posenc::testing {
namespace {

TEST_F(Translate, TextThatIsNotUtf8) {
  const auto answered = translate(marian_path("shared"), "one\n\ntwo\n").out;
  EXPECT_EQ(lines_of(answered).size(), 3u);
  expect_refused_text("one\n\ntwo\nth\xffree\nfour\n", "lines.txt: line 4 must be UTF-8", answered);
}

TEST_F(Translate, TextThatIsNotThere) {
  const std::string model = marian_path("shared");
  expect_refused(posenc({"translate", "--model", model, file("none.txt")}), "translate",
                 "none.txt: cannot be opened");
  expect_refused(posenc({"translate", "--model", model, folder_.path().string()}), "translate",
                 "must be a text file");
}

TEST_F(Translate, AFolderThatLacksFilesNamesThemAll) {
  const auto model = copy("shared");
  std::filesystem::remove(model + "/target.spm");
  std::filesystem::remove(model + "/vocab.json");
  expect_refused(
      translate(model, "six\n"), "translate",
      "must be a Hugging Face folder of a Marian model. Missing: target.spm, vocab.json");
  expect_refused(translate(file("none"), "six\n"), "translate", "none: must be a folder");
  const auto two = copy("separate");
  std::filesystem::remove(two + "/target_vocab.json");
  expect_refused(translate(two, "six\n"), "translate", "target_vocab.json");
  const auto bare = copy("untied");
  std::filesystem::remove(bare + "/model.safetensors");
  expect_refused(translate(bare, "six\n"), "translate", "must hold model.safetensors");
}

TEST_F(Translate, AnotherArchitecture) {
  const auto model = copy("shared");
  set(model + "/config.json", "model_type", "llama");
  expect_refused(translate(model, "six\n"), "translate",
                 "model_type must be that of an encoder-decoder");
}

TEST_F(Translate, AnInvalidVocabulary) {
  const auto model = copy("shared");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\"a\": 0, \"a\": 1}", "vocab.json: must have each token once"},
      {"{\"a\": -1}", "must have integers below 2^32 as ids. Got -1"},
      {"{\"a\": \"b\"}", "must have a number at byte 6"},
      {"{\"a\": {}}", "must have a number at byte 6"},
      {"[]", "must have an object at byte 0"},
      {"{", "must have JSON in UTF-8 as the vocabulary"},
      {"{\"</s>\": 0}", "vocab.json: must have the unknown token. Got no id for \"<unk>\""},
  };
  for (const auto& [text, message] : cases) {
    write_bytes(model + "/vocab.json", text);
    expect_refused(translate(model, "six\n"), "translate", message);
  }
}

TEST_F(Translate, InvalidPieces) {
  const auto model = copy("shared");
  write_bytes(model + "/source.spm", "no pieces");
  const auto result = translate(model, "six\n");
  EXPECT_EQ(result.status, 1);
  EXPECT_CONTAINS(result.err, "source.spm: must be a SentencePiece model");
}

TEST_F(Translate, PiecesThatAreNotAFile) {
  for (const std::string name : {"source.spm", "target.spm"}) {
    const auto model = copy("shared");
    std::filesystem::remove(model + "/" + name);
    std::filesystem::create_directory(model + "/" + name);
    expect_refused(translate(model, "six\n"), "translate", "must include " + name);
    std::filesystem::remove(model + "/" + name);
    write_bytes(model + "/" + name, "");
    expect_refused(translate(model, "six\n"), "translate",
                   name + ": must be a SentencePiece model. Got one without pieces");
    std::filesystem::remove_all(model);
  }
}

// Nested too deeply for a recursive parser's stack.
TEST_F(Translate, SettingsWithoutAnEnd) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const std::vector<std::array<std::string, 3>> cases = {
      {"tokenizer_config.json", "eos_token", "must nest its settings no deeper than 64"},
      {"config.json", "model_type", "must nest its settings no deeper than 64"}};
  for (const auto& [name, key, message] : cases) {
    const auto model = copy("shared");
    write_bytes(model + "/" + name, "{\"" + key + "\": " + deep + "}");
    expect_refused(translate(model, "six\n"), "translate", message);
    std::filesystem::remove_all(model);
  }
}

TEST_F(Translate, WrongUse) {
  EXPECT_EQ(posenc({"translate"}).status, 2);
  EXPECT_EQ(translate("x", "", {"--beams", "0"}).status, 2);
}

}  // namespace
}  // namespace posenc::testing
