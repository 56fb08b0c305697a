// The errors, the options and the results of TextClassifier by themselves. What the labels are,
// tests/text/labels_test.py and tests/differential/labels.py compare with transformers.
#include "posenc/text/text_classifier.h"

#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "posenc/models/inspect_folder.h"

namespace posenc::testing {
namespace {

TextClassifier model(const std::string& name, const FreezeOptions& options = {}) {
  return load_text_classifier(POSENC_LIVE_DIR "/encoder/" + name, options);
}

const std::vector<std::string> kTexts = {"posenc", "the library of posenc is a library", "a",
                                         "The Größe of it is not known"};

// The message of the c10::ValueError that `call` throws.
template <typename Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

TEST(TextClassifier, HasAFunctionForEachKindOfHead) {
  const auto emotions = model("emotions"), entities = model("entities");
  EXPECT_EQ(error_of([&] { emotions.label_tokens(kTexts); }),
            "[TextClassifier] label_tokens() needs a model with labels for tokens "
            "(...ForTokenClassification). Got a model with labels for texts "
            "(...ForSequenceClassification)");
  EXPECT_EQ(error_of([&] { entities.classify(kTexts); }),
            "[TextClassifier] classify() needs a model with labels for texts "
            "(...ForSequenceClassification). Got a model with labels for tokens "
            "(...ForTokenClassification)");
  const auto begins = [](const std::string& text, const std::string& function) {
    return text.rfind("[TextClassifier] " + function + " needs ", 0) == 0;
  };
  EXPECT_TRUE(begins(error_of([&] { emotions.answer("a", "b"); }), "answer()"));
  EXPECT_TRUE(begins(error_of([&] { emotions.choose("a", {"b"}); }), "choose()"));
  EXPECT_TRUE(begins(error_of([&] { emotions.fill({"[MASK]"}); }), "fill()"));
  EXPECT_TRUE(begins(error_of([&] { entities.scores(kTexts); }), "scores()"));
  EXPECT_TRUE(begins(error_of([&] { entities.pair_scores({}); }), "pair_scores()"));
  EXPECT_TRUE(begins(error_of([&] { entities.classify_pairs({}); }), "classify_pairs()"));
}

TEST(TextClassifier, NoTextsHaveNoLabels) {
  const auto emotions = model("emotions");
  EXPECT_TRUE(emotions.classify({}).empty());
  EXPECT_TRUE(emotions.classify_pairs({}).empty());
  EXPECT_EQ(emotions.scores({}).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(emotions.pair_scores({}).sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(model("entities").label_tokens({}).empty());
  EXPECT_TRUE(model("masked").fill({}).empty());
}

TEST(TextClassifier, RefusesOptionsOutOfRange) {
  const auto emotions = model("emotions");
  EXPECT_EQ(error_of([&] { emotions.classify({}, TextClassifyOptions().top_k(0)); }),
            "[TextClassifier] top_k must be positive. Got 0");
  EXPECT_EQ(error_of([&] { emotions.scores({}, TextClassifyOptions().batch_size(0)); }),
            "[TextClassifier] batch_size must be positive. Got 0");
  EXPECT_EQ(
      error_of([&] { emotions.scores({}, TextClassifyOptions().prompt("a").prompt_name("b")); }),
      "[TextClassifier] prompt and prompt_name must not both be set");
  EXPECT_NE(error_of([&] { emotions.scores({}, TextClassifyOptions().prompt_name("b")); }),
            "no error");
  EXPECT_EQ(error_of([&] { model("entities").label_tokens({}, TokenLabelOptions().stride(2)); }),
            "[TextClassifier] stride needs another aggregation than None");
  EXPECT_EQ(error_of([&] { model("masked").fill({}, FillMaskOptions().top_k(0)); }),
            "[TextClassifier] top_k must be positive. Got 0");
  EXPECT_EQ(error_of([&] { model("masked").fill({"[MASK]", "a"}); }),
            "[TextClassifier] a text must have a mask, [MASK]. Got no mask at index 1");
  const auto answers = model("answers");
  const auto refused = [&](const AnswerOptions& options) {
    return error_of([&] { answers.answer("posenc", "the library", options); });
  };
  EXPECT_EQ(refused(AnswerOptions().max_answer_len(0)),
            "[TextClassifier] max_answer_len must be positive. Got 0");
  EXPECT_EQ(refused(AnswerOptions().max_seq_len(0)),
            "[TextClassifier] max_seq_len must be positive. Got 0");
  EXPECT_EQ(refused(AnswerOptions().doc_stride(65)),
            "[TextClassifier] doc_stride must be from 0 to the tokens of a window, 64. Got 65");
  EXPECT_EQ(error_of([&] { answers.answer("", "a"); }),
            "[TextClassifier] the question must not be empty");
  EXPECT_EQ(error_of([&] { answers.answer("a", ""); }),
            "[TextClassifier] the context must not be empty");
}

TEST(TextClassifier, RefusesAModelOfImages) {
  EXPECT_NE(error_of([] { load_text_classifier(POSENC_LIVE_DIR "/encoder/vit"); }), "no error");
}

TEST(TextClassifier, ATextHasTheScoresThatItHasAlone) {
  for (const std::string name : {"emotions", "lengths"}) {
    const auto own = model(name);
    const torch::Tensor all = own.scores(kTexts);
    for (const int64_t batch_size : {1, 2, 3}) {
      const torch::Tensor again = own.scores(kTexts, TextClassifyOptions().batch_size(batch_size));
      EXPECT_TRUE(all.allclose(again, 1e-5, 1e-6));
    }
    for (std::size_t i = 0; i < kTexts.size(); ++i)
      EXPECT_TRUE(all[static_cast<int64_t>(i)].allclose(own.scores({kTexts[i]})[0], 1e-5, 1e-6));
  }
}

TEST(TextClassifier, FreezesAsFreezeDoes) {
  for (const WeightDtype dtype : {WeightDtype::Float32, WeightDtype::Int8, WeightDtype::BFloat16}) {
    const auto options = FreezeOptions().weights(dtype);
    const auto emotions = model("emotions", options);
    const auto own = freeze(load_classifier(POSENC_LIVE_DIR "/encoder/emotions"), options);
    const auto batch = emotions.tokenizer().encode({kTexts[3]});
    const auto inputs =
        EncoderInputs().attention_mask(batch.attention_mask).token_type_ids(batch.token_type_ids);
    const auto expected = at::softmax(own.forward(batch.input_ids, inputs).logits, -1);
    EXPECT_TRUE(emotions.scores({kTexts[3]}).allclose(expected, 1e-5, 1e-6));
    EXPECT_EQ(emotions.model().bytes().own, own.bytes().own);
  }
}

TEST(TextClassifier, LabelsAreTheScoresBestFirst) {
  const auto emotions = model("emotions");
  const auto all = emotions.classify(kTexts);
  const torch::Tensor scores = emotions.scores(kTexts);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const auto best = scores[row].argmax().item<int64_t>();
    EXPECT_EQ(all[i][0].label, emotions.labels()[static_cast<std::size_t>(best)]);
    EXPECT_EQ(all[i][0].score, scores[row][best].item<float>());
    EXPECT_GE(all[i][1].score, all[i][2].score);
  }
  EXPECT_EQ(emotions.classify(kTexts, TextClassifyOptions().top_k(2))[1].size(), 2U);
  EXPECT_EQ(emotions.classify(kTexts, TextClassifyOptions().top_k(9))[1].size(), 3U);
}

TEST(TextClassifier, TellsWhichTextsAreCut) {
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += "posenc ";
  std::vector<int64_t> cut;
  const auto tell = [&](int64_t index) { cut.push_back(index); };
  model("emotions").classify({"a", longer, "the"}, TextClassifyOptions().on_truncated(tell));
  EXPECT_EQ(cut, (std::vector<int64_t>{1}));
  cut.clear();
  model("entities").label_tokens({longer, "a"}, TokenLabelOptions().on_truncated(tell));
  EXPECT_EQ(cut, (std::vector<int64_t>{0}));
  cut.clear();
  const auto windows = TokenLabelOptions()
                           .on_truncated(tell)
                           .aggregation(labels::Aggregation::Simple)
                           .ignore_labels({})
                           .stride(4);
  const auto found = model("entities").label_tokens({longer}, windows);
  EXPECT_TRUE(cut.empty());
  EXPECT_EQ(found[0].back().span->end, static_cast<int64_t>(longer.size()) - 1);
}

TEST(TextClassifier, PlacesAreInCharactersAndInBytes) {
  const std::string text = "Größe 日本 the";
  const auto found = model("entities").label_tokens({text}, TokenLabelOptions().ignore_labels({}));
  ASSERT_FALSE(found[0].empty());
  const TextSpan last = *found[0].back().span;
  EXPECT_EQ(last.end, 12);
  EXPECT_EQ(last.byte_end, static_cast<int64_t>(text.size()));
  const auto begin = static_cast<std::size_t>(last.byte_begin);
  EXPECT_EQ(text.substr(begin), std::string("the").substr(3 - (text.size() - begin)));
}

TEST(TextClassifier, AnswersAreParts) {
  const auto answers = model("answers");
  const std::string context = "the Größe of the library is not known, the library is posenc";
  for (const Answer& answer : answers.answer("the Größe", context, AnswerOptions().top_k(5))) {
    const auto [begin, end, byte_begin, byte_end] = answer.span;
    EXPECT_EQ(answer.text, context.substr(static_cast<std::size_t>(byte_begin),
                                          static_cast<std::size_t>(byte_end - byte_begin)));
    EXPECT_LE(begin, end);
  }
  const auto none =
      answers.answer("the", context, AnswerOptions().top_k(100).handle_impossible_answer(true));
  EXPECT_EQ(std::count_if(none.begin(), none.end(), [](const auto& a) { return a.text.empty(); }),
            1);
}

TEST(TextClassifier, IsPrinted) {
  std::ostringstream text;
  text << model("emotions");
  EXPECT_EQ(text.str().rfind("posenc::TextClassifier(labels=3, posenc::FrozenClassifier(", 0), 0U);
}

TEST(InspectHead, TellsTheKindByArchitectures) {
  EXPECT_EQ(inspect_head(POSENC_LIVE_DIR "/encoder/entities"), head::Kind::Token);
  EXPECT_EQ(inspect_head(POSENC_LIVE_DIR "/encoder/masked"), head::Kind::Masked);
  EXPECT_EQ(inspect_head(POSENC_LIVE_DIR "/encoder/bert"), std::nullopt);
}

}  // namespace
}  // namespace posenc::testing
