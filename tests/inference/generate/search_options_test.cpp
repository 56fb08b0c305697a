// What generate() has beside the settings of transformers, and how searches relate to each other.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "posenc/inference/freeze.h"
#include "posenc/inference/score.h"
#include "posenc/models/generation_config.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "transformer/tiny.h"
#include "weights/files.h"

namespace posenc {
namespace {

using testing::TempDir;
using testing::tiny;
using testing::tiny_model;
using testing::write_bytes;
using Tokens = std::vector<int64_t>;

GenerateOptions of_length(int64_t most) { return GenerateOptions(1, 2).max_new_tokens(most); }

torch::Tensor batch() { return torch::tensor({{3, 4, 5, 6}, {7, 8, 0, 0}, {5, 5, 5, 0}}); }

AttentionMask mask() { return AttentionMask::padding(batch(), 0); }

template <typename Model>
std::vector<std::vector<Hypothesis>> found_by(Model& model, const GenerateOptions& options) {
  return generate(model, batch(), mask(), options);
}

// Calls `check` with a model and the same one frozen.
template <typename Check>
void with_each(const Check& check) {
  auto model = tiny_model(tiny(), 3);
  check(*model);
  const auto frozen = freeze(model);
  check(frozen);
}

TEST(SearchOptions, ScoresAreThoseOfTheSearch) {
  with_each([](auto& model) {
    for (const auto kind : {LengthPenalty::Power, LengthPenalty::Gnmt}) {
      for (const double penalty : {0.0, 0.6, 2.0}) {
        const auto options = of_length(7)
                                 .num_beams(3)
                                 .num_return_sequences(3)
                                 .length_penalty(penalty)
                                 .length_penalty_kind(kind);
        const auto found = found_by(model, options);
        for (size_t rank = 0; rank < 3; ++rank) {
          std::vector<Tokens> targets;
          for (const auto& of_source : found) {
            targets.push_back({1});
            const Tokens& tokens = of_source[rank].tokens;
            targets.back().insert(targets.back().end(), tokens.begin(), tokens.end());
          }
          const auto values = score(model, batch(), mask(), targets);
          for (size_t b = 0; b < targets.size(); ++b) {
            ASSERT_EQ(values[b].size() + 1, targets[b].size());
            double sum = 0.0;
            for (const double value : values[b]) sum += value;
            const auto count = static_cast<double>(values[b].size());
            const double base = kind == LengthPenalty::Gnmt ? (5 + count) / 6 : count;
            EXPECT_NEAR(found[b][rank].score, sum / std::pow(base, penalty), 1e-4);
          }
        }
      }
    }
  });
}

TEST(SearchOptions, ScoreRefusesWhatItCannotRead) {
  auto model = tiny_model();
  const std::vector<Tokens> good(3, Tokens{1, 2});
  const auto refuse = [&](std::vector<Tokens> targets, const char* message) {
    EXPECT_ERROR(score(*model, batch(), mask(), targets), c10::ValueError, message);
  };
  refuse({{1, 2}}, "there must be one target for each of the 3 sources. Got 1");
  refuse({{1}, {}, {1}}, "target 1 must have the token that begins it");
  refuse({{1, 9}, {1}, {1}}, "the tokens of target 0 must lie in [0, 9). Got 9");
  refuse({{1}, {1}, Tokens(18, 1)}, "target 2 must have at most the model's max_len 16");
  model->train();
  refuse(good, "the model must be in eval mode");
  model->eval();
  model->decoder->layers[1]->train();
  refuse(good, "model->eval(). Got decoder.layers.1 in train mode");
}

// As transformers 5.23 reads them: tests/differential/generation.py draws them beside it.
TEST(SearchOptions, JsonMayHaveNumbersOfOtherTools) {
  const TempDir folder;
  const auto read = [&](const std::string& text) {
    write_bytes(folder / "generation_config.json", text);
    return load_generation_config(folder.path().string());
  };
  const auto options = read(R"({"decoder_start_token_id": 3.0, "eos_token_id": [2.0, -1],
      "pad_token_id": -1, "suppress_tokens": [-1], "begin_suppress_tokens": [4.0, -1],
      "renormalize_logits": 1, "remove_invalid_values": 0, "do_sample": 0.0, "num_beams": 1.0,
      "max_new_tokens": 5.0, "min_length": 0.0, "exponential_decay_length_penalty": [2.0, 1.5]})");
  EXPECT_EQ(options.bos_id(), 3);
  EXPECT_EQ(options.eos_ids(), Tokens{2});
  EXPECT_TRUE(options.suppress_tokens().empty());
  EXPECT_EQ(options.begin_suppress_tokens(), Tokens{4});
  EXPECT_FALSE(options.renormalize()) << "only true itself";
  EXPECT_FALSE(options.remove_invalid_values() || options.do_sample());
  EXPECT_EQ(options.max_new_tokens(), 5);
  EXPECT_EQ(options.exponential_decay_length_penalty()->start, 2);
  EXPECT_TRUE(read(R"({"bos_token_id": 3, "do_sample": 1})").do_sample());
  EXPECT_TRUE(read(R"({"bos_token_id": 3, "eos_token_id": -1})").eos_ids().empty());
  for (const auto& [text, rule] : std::vector<std::pair<const char*, const char*>>{
           {R"({"bos_token_id": 3, "num_beams": 2.0})", "num_beams must be an integer"},
           {R"({"bos_token_id": 3, "min_length": 2.0})", "min_length must be an integer"},
           {R"({"bos_token_id": 3, "max_new_tokens": 5.5})", "max_new_tokens must be an integer"},
           {R"({"bos_token_id": 3, "do_sample": "yes"})", "do_sample must be true or false"},
           {R"({"decoder_start_token_id": -1})", "decoder_start_token_id must be a token"}}) {
    EXPECT_ERROR(read(text), c10::ValueError, rule);
  }
}

// Each of the best first tokens, and then what greedy search makes of it as a prefix.
TEST(SearchOptions, AlternativesDifferInTheirFirstToken) {
  with_each([](auto& model) {
    const auto options = of_length(6).return_alternatives(true).num_return_sequences(4);
    const auto found = found_by(model, options);
    const auto greedy = found_by(model, of_length(6));
    for (size_t b = 0; b < found.size(); ++b) {
      ASSERT_EQ(found[b].size(), 4u);
      std::set<int64_t> first;
      std::set<Tokens> all;
      for (const auto& one : found[b]) {
        first.insert(one.tokens.front());
        all.insert(one.tokens);
        if (one.tokens.front() == 2) continue;
        auto prefixes = std::vector<Tokens>(3, {1, one.tokens.front()});
        const auto after = found_by(model, of_length(5).prefixes(prefixes))[b][0].tokens;
        EXPECT_EQ(Tokens(one.tokens.begin() + 1, one.tokens.end()), after);
      }
      EXPECT_EQ(first.size(), 4u);
      EXPECT_EQ(all.count(greedy[b][0].tokens), 1u);
    }
    EXPECT_EQ(found_by(model, GenerateOptions(options).num_return_sequences(40))[0].size(), 9u)
        << "there are no more tokens";
  });
}

// Samples are in the order drawn, as in transformers, and alternatives in that of their first
// token.
TEST(SearchOptions, ATokenNamesThePlaceOfItsSequence) {
  with_each([](auto& model) {
    for (const bool samples : {true, false}) {
      std::map<std::pair<int64_t, int64_t>, Tokens> streamed;
      std::set<std::pair<int64_t, int64_t>> ended;
      auto options = of_length(6).num_return_sequences(5).on_token([&](const GeneratedToken& one) {
        const std::pair key(one.source, one.sequence);
        EXPECT_EQ(ended.count(key), 0u);
        streamed[key].push_back(one.token);
        if (one.is_last) ended.insert(key);
        return true;
      });
      samples ? options.do_sample(true) : options.return_alternatives(true);
      const auto found = found_by(model, options);
      for (const auto& [key, tokens] : streamed) {
        const auto& all = found[static_cast<size_t>(key.first)];
        EXPECT_EQ(all[static_cast<size_t>(key.second)].tokens, tokens);
        EXPECT_EQ(ended.count(key), 1u);
      }
      EXPECT_EQ(streamed.size(), 15u);
    }
  });
}

TEST(SearchOptions, EachSourceMayHaveItsOwnFirstToken) {
  with_each([](auto& model) {
    for (const int64_t beams : {1, 3}) {
      const auto options = of_length(6).num_beams(beams);
      const auto found = found_by(model, GenerateOptions(options).forced_bos_ids({4, 6, 8}));
      for (const size_t b : {0, 1, 2}) {
        const auto token = static_cast<int64_t>(4 + 2 * b);
        EXPECT_EQ(found[b][0].tokens.front(), token);
        const auto alone = found_by(model, GenerateOptions(options).forced_bos_id(token));
        EXPECT_EQ(found[b][0].tokens, alone[b][0].tokens);
      }
    }
  });
}

// A ragged prefix is the same as that of each source alone, and gives what forcing gives.
TEST(SearchOptions, APrefixIsWhatForcingGives) {
  with_each([](auto& model) {
    const std::vector<Tokens> prefixes = {{1, 4}, {1}, {1, 6, 3, 7}};
    for (const int64_t beams : {1, 3}) {
      const auto options = of_length(5).num_beams(beams);
      const auto ragged = found_by(model, GenerateOptions(options).prefixes(prefixes));
      for (size_t b = 0; b < 3; ++b) {
        const auto alone =
            found_by(model, GenerateOptions(options).prefixes(std::vector<Tokens>(3, prefixes[b])));
        EXPECT_EQ(ragged[b][0].tokens, alone[b][0].tokens);
        EXPECT_NEAR(ragged[b][0].score, alone[b][0].score, 1e-5);
      }
      const auto forced =
          found_by(model, of_length(6).num_beams(beams).length_penalty(0.0).forced_bos_id(4));
      const auto given = found_by(model, GenerateOptions(options).length_penalty(0.0).prefixes(
                                             std::vector<Tokens>(3, {1, 4})));
      for (size_t b = 0; b < 3; ++b) {
        EXPECT_EQ(Tokens(forced[b][0].tokens.begin() + 1, forced[b][0].tokens.end()),
                  given[b][0].tokens);
        EXPECT_NEAR(forced[b][0].score, given[b][0].score, 1e-5);
      }
    }
  });
}

TEST(SearchOptions, ProgressCountsTokensAfterThePrefix) {
  auto model = tiny_model();
  for (const int64_t beams : {1, 2}) {
    std::vector<int64_t> steps;
    const auto options = of_length(3)
                             .eos_ids({})
                             .num_beams(beams)
                             .prefixes(std::vector<Tokens>{{1, 4, 5}})
                             .progress([&](const GenerateProgress& progress) {
                               steps.push_back(progress.step);
                               return true;
                             });
    found_by(*model, options);
    EXPECT_EQ(steps, (Tokens{1, 2, 3}));
  }
}

TEST(SearchOptions, StreamingGivesTheTokensOfTheResult) {
  with_each([](auto& model) {
    std::map<int64_t, Tokens> streamed;
    auto options = of_length(8).on_token([&](const GeneratedToken& token) {
      streamed[token.source].push_back(token.token);
      EXPECT_LE(token.log_probability, 0.0);
      return true;
    });
    const auto found = found_by(model, options);
    for (int64_t b = 0; b < 3; ++b) EXPECT_EQ(streamed[b], found[b][0].tokens);
    options.on_token([](const GeneratedToken& token) { return token.source != 1; });
    const auto stopped = found_by(model, options);
    EXPECT_EQ(stopped[0][0].tokens, found[0][0].tokens);
    EXPECT_EQ(stopped[1][0].tokens, Tokens{found[1][0].tokens.front()});
  });
}

TEST(SearchOptions, ACriterionEndsASequenceWithItsToken) {
  with_each([](auto& model) {
    for (const int64_t beams : {1, 2}) {
      const auto criterion = [](const Tokens& columns) { return columns.size() == 4; };
      const auto options = of_length(9).eos_ids({}).num_beams(beams).stopping_criteria(criterion);
      for (const auto& found : found_by(model, options)) EXPECT_EQ(found[0].tokens.size(), 3u);
    }
  });
}

// Whatever a callback throws, the next search is right.
TEST(SearchOptions, ACallbackMayThrow) {
  with_each([](auto& model) {
    const auto expected = found_by(model, of_length(6).num_beams(2));
    const auto fail = [] { throw std::runtime_error("a callback's"); };
    const auto progress = of_length(6).num_beams(2).progress([&](const GenerateProgress& now) {
      if (now.step == 2) fail();
      return true;
    });
    const auto criterion = of_length(6).num_beams(2).stopping_criteria([&](const Tokens& columns) {
      if (columns.size() == 3) fail();
      return false;
    });
    const auto on_token = of_length(6).on_token([&](const GeneratedToken&) -> bool {
      fail();
      return true;
    });
    for (const auto& options : {progress, criterion, on_token}) {
      EXPECT_THROW(found_by(model, options), std::runtime_error);
      const auto found = found_by(model, of_length(6).num_beams(2));
      for (size_t b = 0; b < found.size(); ++b)
        EXPECT_EQ(found[b][0].tokens, expected[b][0].tokens);
    }
  });
}

TEST(SearchOptions, RefusesContradictions) {
  auto model = tiny_model();
  const auto refuse = [&](const GenerateOptions& options, const char* message) {
    EXPECT_ERROR(found_by(*model, options), c10::ValueError, message);
  };
  refuse(of_length(3).return_alternatives(true).num_beams(2),
         "return_alternatives needs num_beams 1 and no do_sample. Got 2");
  refuse(of_length(3).forced_bos_ids({4}),
         "forced_bos_ids must have one token for each of the 3 sources. Got 1");
  refuse(of_length(3).forced_bos_ids({4, 4, 9}), "forced_bos_ids must lie in [0, 9). Got 9");
  refuse(of_length(3).forced_bos_id(4).suppress_tokens({4}),
         "forced_bos_id must not all be among suppress_tokens");
  refuse(of_length(3).prefixes(std::vector<Tokens>(2, Tokens{1})),
         "prefixes must have one list, or one for each of the 3 sources. Got 2");
  refuse(of_length(14).prefixes(std::vector<Tokens>{{1, 3, 4, 5}}),
         "max_new_tokens must be at most the model's max_len 16 with the prefix. Got 14 after 4");
  refuse(of_length(std::numeric_limits<int64_t>::max()).prefixes(std::vector<Tokens>{{1, 3}}),
         "max_new_tokens must be at most the model's max_len 16 with the prefix. Got 9");
  refuse(GenerateOptions(1, 2).max_new_tokens(std::nullopt).max_length(18),
         "max_length must be at most one more than the model's max_len 16. Got 18");
  refuse(of_length(3).bad_words_ids(std::vector<Tokens>{Tokens{}}),
         "each of bad_words_ids must not be empty");
  refuse(of_length(3).repetition_penalty(0.0), "repetition_penalty must be above 0");
}

}  // namespace
}  // namespace posenc
