// Continued texts beside those of transformers, which tests/models/llama/make_models.py writes.
#include "posenc/text/text_generator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "posenc/models/decoder.h"
#include "posenc/models/frozen_file.h"
#include "posenc/models/save_pretrained.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using Json = nlohmann::json;

const std::string kFolder = POSENC_LIVE_DIR "/llama/story";

Json said() { return Json::parse(read_bytes(POSENC_LIVE_DIR "/llama/story.json")); }

class TextGeneratorTest : public ::testing::Test {
 protected:
  void expect(const char* what, const TextGenerateOptions& options,
              bool with_scores = false) const {
    const auto found = generator_.generate(prompts_, options);
    ASSERT_EQ(found.size(), prompts_.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Json& expected = said_[what][i];
      ASSERT_EQ(found[i].size(), expected.size()) << what;
      for (std::size_t j = 0; j < found[i].size(); ++j) {
        EXPECT_EQ(found[i][j].ids, expected[j]["ids"].get<std::vector<int64_t>>())
            << what << " " << i;
        EXPECT_EQ(found[i][j].text, expected[j]["text"].get<std::string>()) << what << " " << i;
        const double score = expected[j]["score"].get<double>();
        EXPECT_NEAR(with_scores ? found[i][j].score : score, score, 2e-5) << what << " " << i;
      }
    }
  }

  const TextGenerator generator_ = load_text_generator(kFolder);
  const Json said_ = said();
  const std::vector<std::string> prompts_ = said_["prompts"].get<std::vector<std::string>>();
};

TEST_F(TextGeneratorTest, ContinuesAsTransformers) {
  TextGenerateOptions options = generator_.options();
  for (const int64_t batch : {1, 3, 8}) expect("greedy", options.batch_size(batch));
  expect("stopped", TextGenerateOptions(options).stop_strings({said_["stop"].get<std::string>()}));
  options.generation().num_beams(3).num_return_sequences(2);
  expect("beams", options, /*with_scores=*/true);
}

// The pieces of a text are the text, and the index of its prompt is that among all of them.
TEST_F(TextGeneratorTest, StreamsWhatItReturns) {
  std::map<int64_t, std::string> texts;
  auto options = generator_.options();
  options.batch_size(3).on_text([&](const GeneratedText& piece) {
    texts[piece.source] += piece.text;
    return true;
  });
  const auto found = generator_.generate(prompts_, options);
  ASSERT_EQ(texts.size(), prompts_.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(texts[static_cast<int64_t>(i)], found[i][0].text) << i;
}

TEST_F(TextGeneratorTest, EndsWhereACallbackSaysSo) {
  auto options = generator_.options();
  options.on_text([](const GeneratedText& piece) { return piece.source != 0; });
  const auto found = generator_.generate(prompts_, options);
  EXPECT_EQ(found[0][0].ids.size(), 1U);
  EXPECT_EQ(found[1][0].ids.size(), 12U);
  auto stopping = generator_.options();
  stopping.generation().stopping_criteria([](const auto& columns) { return columns.back() == 39; });
  stopping.stop_strings({"never"});
  EXPECT_EQ(generator_.generate(prompts_, stopping)[0][0].ids.size(), 4U) << "of both criteria";
}

TEST_F(TextGeneratorTest, HonoursStopStringsOfTheFolder) {
  const TempDir folder;
  std::filesystem::copy(kFolder, folder.path().string(), std::filesystem::copy_options::recursive);
  const std::string path = folder / "generation_config.json";
  Json settings = Json::parse(read_bytes(path));
  settings["stop_strings"] = said_["stop"];
  write_bytes(path, settings.dump());
  const TextGenerator generator = load_text_generator(folder.path().string());
  EXPECT_EQ(generator.options().stop_strings(),
            std::vector<std::string>{said_["stop"].get<std::string>()});
  EXPECT_EQ(generator.generate(prompts_)[0][0].ids,
            said_["stopped"][0][0]["ids"].get<std::vector<int64_t>>());
}

class ChatTest : public TextGeneratorTest {
 protected:
  // A generator of the folder with this template.
  TextGenerator with_template(const std::string& source) const {
    const std::string path = folder_ / "model";
    std::filesystem::remove_all(path);
    std::filesystem::copy(kFolder, path, std::filesystem::copy_options::recursive);
    write_bytes(path + "/chat_template.jinja", source);
    return load_text_generator(path);
  }

  const TempDir folder_;
  const std::vector<ChatMessage> messages_ = {{"system", "a"}, {"user", "cat"}};
};

TEST_F(ChatTest, AnswersByTheTemplate) {
  const TextGenerator generator = with_template(
      "{{ bos_token }}{% for m in messages %}{{ m.role }} {{ m.content }}{{ x }} {% endfor %}"
      "{% if add_generation_prompt %}b{% endif %}");
  const auto prompted = [&](const std::string& text) {
    return generator.generate({text}, generator.options().add_special_tokens(false))[0][0];
  };
  EXPECT_EQ(generator.chat(messages_)[0].ids, prompted("<s>system a user cat b").ids);
  auto options = generator.options();
  options.chat_template().variables(R"({"x": "!"})");
  options.generation().num_beams(2).num_return_sequences(2);
  EXPECT_EQ(generator.chat(messages_, options).size(), 2U);
  options = generator.options();
  options.chat_template().variables(R"({"x": "!"})").add_generation_prompt(false);
  EXPECT_EQ(generator.chat(messages_, options)[0].text, prompted("<s>system a! user cat! ").text);
}

TEST_F(ChatTest, ItsTemplatesAreSavedWithTheModel) {
  with_template("a");
  const std::string path = folder_ / "model", inner = "/additional_chat_templates/";
  std::filesystem::create_directory(path + inner);
  write_bytes(path + inner + "rag.jinja", "b");
  write_bytes(path + inner + "notes.txt", "c");
  save_pretrained(load_decoder(path), folder_ / "saved");
  freeze_folder(path, folder_ / "frozen");
  for (const char* const copy : {"saved", "frozen"}) {
    const std::string own = folder_ / copy;
    EXPECT_EQ(read_bytes(own + inner + "rag.jinja"), "b");
    EXPECT_FALSE(std::filesystem::exists(own + inner + "notes.txt"));
    EXPECT_EQ(read_bytes(own + "/chat_template.jinja"), "a");
  }
}

TEST_F(TextGeneratorTest, PromptsAreUTF8) {
  EXPECT_ERROR(generator_.generate({"a", "caf\xC3"}), c10::ValueError,
               "[TextGenerator] prompt 1 must be UTF-8. Got another byte at 3");
}

TEST_F(ChatTest, SaysWhyThereIsNoTemplate) {
  EXPECT_ERROR(generator_.chat(messages_), c10::ValueError,
               "must have a chat template of the name 'default'");
  const TextGenerator generator = with_template("a\n{% include 'b' %}");
  EXPECT_EQ(generator.generate(prompts_)[0][0].ids, generator_.generate(prompts_)[0][0].ids);
  EXPECT_ERROR(generator.chat(messages_), c10::ValueError, "[chat_template] line 2: 'include'");
  EXPECT_ERROR(with_template("{{ raise_exception('No.') }}").chat(messages_), c10::ValueError,
               "the template raises: No.");
}

TEST_F(TextGeneratorTest, RefusesPromptsAndOptions) {
  auto options = generator_.options();
  EXPECT_ERROR(generator_.generate({"a"}, options.batch_size(0)), c10::ValueError, "batch_size");
  auto bare = generator_.options().add_special_tokens(false);
  EXPECT_ERROR(generator_.generate({"a", ""}, bare), c10::ValueError,
               "a prompt must have a token. Got ''");
  EXPECT_EQ(generator_.generate({""}, generator_.options())[0][0].ids.size(), 12U) << "<s> is one";
  auto beams = generator_.options().on_text([](const GeneratedText&) { return true; });
  beams.generation().num_beams(2);
  EXPECT_ERROR(generator_.generate({"a"}, beams), c10::ValueError, "on_token");
}

}  // namespace
}  // namespace posenc::testing
