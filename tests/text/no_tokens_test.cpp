// Texts, choices and contexts of which a tokenizer makes no token, and none at all.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "posenc/text/text_classifier.h"
#include "support/compare.h"
#include "support/temp_dir.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

const std::string kNoToken = "\x01";  // which the tokenizers of these folders remove

std::string live(const std::string& name) { return POSENC_LIVE_DIR "/encoder/" + name; }

// A copy of a folder whose tokenizer adds no special tokens.
class WithoutSpecialTokens {
 public:
  explicit WithoutSpecialTokens(const std::string& name) : path_(dir_ / name) {
    fs::copy(live(name), path_, fs::copy_options::recursive);
    change("/tokenizer.json", "post_processor", nullptr);
    change("/tokenizer_config.json", "tokenizer_class", "PreTrainedTokenizerFast");
  }
  TextClassifier load() const { return load_text_classifier(path_); }

 private:
  void change(const std::string& file, const char* key, const nlohmann::json& value) const {
    nlohmann::json settings;
    std::ifstream(path_ + file) >> settings;
    settings[key] = value;
    std::ofstream(path_ + file) << settings;
  }

  TempDir dir_;
  std::string path_;
};

TEST(NoTokens, NoChoicesHaveNoProbabilities) {
  const auto model = load_text_classifier(live("choices"));
  const auto none = model.choose("the library", {});
  EXPECT_EQ(none.sizes(), (torch::IntArrayRef{0}));
  EXPECT_EQ(none.scalar_type(), torch::kFloat);
  EXPECT_EQ(model.choose("the library", {"a"}).item<float>(), 1.0F);
}

// Its tokens are those of the text and the special ones.
TEST(NoTokens, AnEmptyChoiceIsOne) {
  const auto model = load_text_classifier(live("choices"));
  const std::vector<std::string> choices = {"a library", "", kNoToken, "the"};
  const auto found = model.choose("posenc", choices);
  ASSERT_EQ(found.sizes(), (torch::IntArrayRef{4}));
  EXPECT_NEAR(found.sum().item<float>(), 1.0F, 1e-6F);
  EXPECT_NEAR(found[1].item<float>(), found[2].item<float>(), 1e-6F);
  EXPECT_TRUE(model.choose("", {"", ""}).allclose(torch::full({2}, 0.5F)));
}

TEST(NoTokens, AChoiceWithoutATokenIsAnErrorByItsIndex) {
  const WithoutSpecialTokens folder("choices");
  const auto model = folder.load();
  const std::string rule = "[TextClassifier] a text must have a token. Got an empty text at index ";
  EXPECT_ERROR(model.choose("", {"a", ""}), c10::ValueError, rule + "1");
  EXPECT_ERROR(model.choose(kNoToken, {kNoToken, "a"}), c10::ValueError, rule + "0");
  EXPECT_EQ(model.choose("a", {"", kNoToken}).sizes(), (torch::IntArrayRef{2}));
}

TEST(NoTokens, AContextWithoutATokenHasNoAnswer) {
  const auto impossible = AnswerOptions().handle_impossible_answer(true);
  const auto model = load_text_classifier(live("answers"));
  EXPECT_TRUE(model.answer("posenc", kNoToken).empty());
  const auto none = model.answer("posenc", kNoToken, impossible);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].text, "");
  EXPECT_EQ(none[0].score, 1.0F) << "the first token alone may be the answer";
  const WithoutSpecialTokens folder("answers");
  const auto bare = folder.load();
  EXPECT_TRUE(bare.answer("posenc", kNoToken).empty());
  ASSERT_EQ(bare.answer("posenc", kNoToken, impossible).size(), 1u);
  EXPECT_EQ(bare.answer("posenc", kNoToken, impossible)[0].text, "");
  EXPECT_ERROR(bare.answer(kNoToken, kNoToken), c10::ValueError,
               "[TextClassifier] the question and the context must have a token. Got no token");
}

// The question has none, and no window lacks the context.
TEST(NoTokens, AQuestionWithoutATokenIsAnswered) {
  for (const auto& answer : load_text_classifier(live("answers"))
                                .answer(kNoToken, "a library", AnswerOptions().top_k(3)))
    EXPECT_NE(std::string("a library").find(answer.text), std::string::npos);
}

}  // namespace
}  // namespace posenc::testing
