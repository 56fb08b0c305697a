// The parts of examples/pronounce: dictionary, held-out words, score, files.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>

#include "cli/program.h"
#include "files.h"
#include "learning_curve.h"
#include "lexicon.h"
#include "score.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using pronounce::hold_out;
using pronounce::LexiconEntry;
using pronounce::Phonemes;
using pronounce::read_lexicon;

class LexiconFile : public InFolder {};

std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST_F(LexiconFile, HasAWordOnceWithAllItsWays) {
  const auto path = text_file("d",
                              ";;; a comment # and more\n"
                              "read R EH1 D\n"
                              "READ(2) R IY1 D # present\n"
                              "read(3) R EH2 D\n"
                              "\n"
                              "a AH0\n"
                              "o'clock AH0 K L AA1 K\n"
                              "3d TH R IY1 D IY2\n");
  const auto lexicon = read_lexicon(path);
  ASSERT_EQ(lexicon.entries.size(), 2u);
  EXPECT_EQ(lexicon.left_out, 2);
  EXPECT_EQ(lexicon.entries[0].word, "a");
  EXPECT_EQ(lexicon.entries[1].word, "read");
  EXPECT_EQ(lexicon.entries[1].pronunciations,
            (std::vector<Phonemes>{{"R", "EH", "D"}, {"R", "IY", "D"}}))
      << "without stress two ways are one";
}

TEST_F(LexiconFile, RejectsInvalidFiles) {
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "No such file",
                      refusal_of([&] { read_lexicon(file("absent")); }));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "must have words of a-z",
                      refusal_of([&] { read_lexicon(text_file("none", "3d TH R\n;;; x\n")); }));
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "bad:2: a word must have phonemes",
                      refusal_of([&] { read_lexicon(text_file("bad", "a AH0\nb # B IY1\n")); }));
}

pronounce::Lexicon of(std::vector<LexiconEntry> entries) { return {std::move(entries), 0}; }

TEST(HoldOut, KeepsWordsApartAndDependsOnTheSeedAlone) {
  std::vector<LexiconEntry> entries;
  for (char c = 'a'; c <= 'z'; ++c) entries.push_back({std::string(1, c), {{"A"}, {"B"}}});
  const auto words = [&](int64_t count, int64_t seed) {
    const auto split = hold_out(of(entries), count, seed);
    std::set<std::string> held_out, train;
    for (const auto& entry : split.held_out) held_out.insert(entry.word);
    for (const auto& entry : split.train) {
      train.insert(entry.word);
      EXPECT_EQ(held_out.count(entry.word), 0u);
      EXPECT_EQ(entry.pronunciations.size(), 2u);
    }
    EXPECT_EQ(static_cast<int64_t>(held_out.size()), count);
    EXPECT_EQ(held_out.size() + train.size(), entries.size());
    return held_out;
  };
  EXPECT_EQ(words(7, 1), words(7, 1));
  EXPECT_NE(words(7, 1), words(7, 2));
  for (const int64_t count : {0, 26, -1}) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                        "--held-out must be at least 1 and less than the number of words, 26.",
                        refusal_of([&] { hold_out(of(entries), count, 1); }));
  }
}

class WriteFile : public InFolder {};

TEST_F(WriteFile, ReplacesAFileOrLeavesItAsItWas) {
  const auto path = text_file("f", "the old content, which is longer");
  pronounce::write_file(path, "new");
  EXPECT_EQ(read_bytes(path), "new");
  const auto absent = file("absent/f");
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "absent/f: No such file",
                      refusal_of([&] { pronounce::write_file(absent, "new"); }));
  const auto folder = folder_.path().string();  // can be written next to, but not replaced
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, folder + ": ",
                      refusal_of([&] { pronounce::write_file(folder, "new"); }));
  EXPECT_FALSE(std::filesystem::exists(folder + ".tmp"));
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

class CurveFile : public InFolder {};

TEST_F(CurveFile, DropsThePointsOfStepsThatWereNotSaved) {
  const auto path = file("curve.jsonl");
  pronounce::LearningCurve written(path, 0);
  for (const int64_t step : {10, 20, 30}) written.add({step, 0.5, 1.5, 0.25, 0.375, 0.75});
  pronounce::LearningCurve read(path, 20);
  EXPECT_TRUE(read.has(20));
  EXPECT_FALSE(read.has(30));
  ASSERT_EQ(read.points().size(), 2u);
  EXPECT_EQ(read.points()[1].first_error_rate, 0.375);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "must be a learning curve",
                      refusal_of([&] { pronounce::LearningCurve(text_file("none", "{}\n"), 20); }));
}

Phonemes phonemes(const std::string& letters) {
  Phonemes result;
  for (const char c : letters) result.emplace_back(1, c);
  return result;
}

pronounce::Score scored(const std::string& said, const std::vector<std::string>& ways) {
  LexiconEntry entry{"word", {}};
  for (const auto& way : ways) entry.pronunciations.push_back(phonemes(way));
  return pronounce::score({phonemes(said)}, {entry});
}

TEST(Score, CountsTheFewestEdits) {
  const std::vector<std::tuple<std::string, std::string, int64_t>> cases = {
      {"ABC", "ABC", 0}, {"AXC", "ABC", 1}, {"AC", "ABC", 1},   {"ABBC", "ABC", 1},
      {"", "ABC", 3},    {"BCA", "ABC", 2}, {"XYZW", "ABC", 4}, {"BABC", "ABCB", 2},
  };
  for (const auto& [said, way, errors] : cases) {
    const auto one = scored(said, {way});
    EXPECT_EQ(one.errors, errors) << said << " for " << way;
    EXPECT_EQ(one.right, errors == 0 ? 1 : 0);
    EXPECT_DOUBLE_EQ(one.error_rate(),
                     static_cast<double>(errors) / static_cast<double>(way.size()));
  }
}

TEST(Score, TakesTheNearestWayAndTellsOfTheFirst) {
  const auto one = scored("ABCD", {"XYZ", "ABCD", "AB"});
  EXPECT_EQ(one.right, 1);
  EXPECT_EQ(one.errors, 0);
  EXPECT_EQ(one.phonemes, 4);
  EXPECT_EQ(one.first_errors, 4);
  EXPECT_EQ(one.first_phonemes, 3);

  const auto two = pronounce::score({phonemes("AB"), phonemes("C")},
                                    {{"x", {phonemes("AB")}}, {"y", {phonemes("CD")}}});
  EXPECT_EQ(two.words, 2);
  EXPECT_DOUBLE_EQ(two.error_rate(), 0.25) << "over all phonemes, not a mean of words";
  EXPECT_DOUBLE_EQ(two.share_right(), 0.5);
}

}  // namespace
}  // namespace posenc::testing
