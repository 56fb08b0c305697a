// What a server asks of a search: requests with options of their own at once on one frozen model,
// some of which are cancelled or fail, and memory that does not follow from limits alone.

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "posenc/inference/score.h"
#include "support/compare.h"
#include "support/search_reference.h"
#include "support/seed.h"
#include "support/test_allocator.h"

namespace posenc::testing {
namespace {

constexpr int64_t kRequests = 8, kRounds = 3;

// Every way of searching and every kind of processor, so that their state would meet.
GenerateOptions request(int64_t number) {
  auto options = GenerateOptions(kBegin, kEnd).max_new_tokens(6 + number);
  switch (number % kRequests) {
    case 0: return options;
    case 1: return options.num_beams(3).num_return_sequences(2).no_repeat_ngram_size(2);
    case 2: return options.repetition_penalty(1.5).suppress_tokens({5, 6});
    case 3: return options.num_beams(2).coverage_penalty(0.5).return_attention(true);
    case 4: return options.do_sample(true).top_k(4).num_return_sequences(3);  // of a generator each
    case 5: return options.return_alternatives(true).num_return_sequences(3).min_new_tokens(4);
    case 6: return options.prefixes(std::vector<std::vector<int64_t>>{{kBegin, 7, 9}});
    default:
      return options.num_beams(4)
          .length_penalty_kind(LengthPenalty::Gnmt)
          .bad_words_ids(std::vector<std::vector<int64_t>>{{7, 8}, {9}});
  }
}

// A frozen model and the sources of each request.
struct Server {
  Dice dice{21};
  Transformer model = any_model(dice, 21);
  FrozenTransformer frozen = freeze(model);
  std::vector<torch::Tensor> sources;

  Server() {
    for (int64_t number = 0; number < kRequests; ++number)
      sources.push_back(any_ids(dice, 1 + number % 3, 3 + 2 * number, true));
  }
  std::vector<std::vector<Hypothesis>> answer(int64_t number, GenerateOptions options) const {
    const auto& src = sources[static_cast<size_t>(number)];
    if (options.do_sample())
      options.generator(at::detail::createCPUGenerator(static_cast<uint64_t>(number)));
    return generate(frozen, src, AttentionMask::padding(src, kPad), options);
  }
  std::vector<std::vector<std::vector<Hypothesis>>> answers() const {
    std::vector<std::vector<std::vector<Hypothesis>>> all;
    for (int64_t number = 0; number < kRequests; ++number)
      all.push_back(answer(number, request(number)));
    return all;
  }
};

// Calls `serve(number)` for every request, each in a thread of its own.
template <typename Serve>
void at_once(const Serve& serve) {
  std::vector<std::thread> threads;
  for (int64_t number = 0; number < kRequests; ++number)
    threads.emplace_back([&serve, number] { serve(number); });
  for (auto& thread : threads) thread.join();
}

TEST(Server, AnswersDifferentRequestsAtOnce) {
  const Server server;
  const auto expected = server.answers();
  std::vector<std::vector<std::vector<Hypothesis>>> got(kRounds * kRequests);
  at_once([&](int64_t number) {
    for (int64_t round = 0; round < kRounds; ++round)
      got[static_cast<size_t>(round * kRequests + number)] = server.answer(number, request(number));
  });
  for (size_t i = 0; i < got.size(); ++i) expect_bit_equal(got[i], expected[i % kRequests]);
}

// Every other request is cancelled, or its callback throws, while the others run; the request after
// it in the same thread is right.
TEST(Server, CancelsRequestsBesideOthers) {
  const Server server;
  const auto expected = server.answers();
  std::vector<std::vector<std::vector<Hypothesis>>> got(kRequests);
  std::vector<int> thrown(kRequests), longest(kRequests);
  at_once([&](int64_t number) {
    const auto index = static_cast<size_t>(number);
    for (int64_t round = 0; round < kRounds && number % 2 == 1; ++round) {
      auto options = request(number);
      options.progress([&](const GenerateProgress& progress) {
        if (progress.step < 2) return true;
        if (number % 4 == 1) throw std::runtime_error("the client has left");
        return false;
      });
      try {
        for (const auto& of_source : server.answer(number, options))
          for (const auto& one : of_source)
            longest[index] = std::max(longest[index], static_cast<int>(one.tokens.size()));
      } catch (const std::runtime_error&) {
        ++thrown[index];
      }
    }
    got[index] = server.answer(number, request(number));
  });
  for (size_t i = 0; i < kRequests; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(thrown[i], i % 4 == 1 ? kRounds : 0);
    if (i % 4 == 3) {
      EXPECT_LE(longest[i], 2) << "it ends with the step that cancels it";
    }
    expect_bit_equal(got[i], expected[i]);
  }
}

TEST(Server, ScoresAtOnce) {
  const Server server;
  const auto run = [&](int64_t number) {
    const auto& src = server.sources[static_cast<size_t>(number)];
    std::vector<std::vector<int64_t>> targets(static_cast<size_t>(src.size(0)), {kBegin, 5, 7});
    targets.front().resize(static_cast<size_t>(2 + number), 9);
    return score_with_attention(server.frozen, src, AttentionMask::padding(src, kPad), targets);
  };
  std::vector<std::vector<ScoredTarget>> expected, got(kRequests);
  for (int64_t number = 0; number < kRequests; ++number) expected.push_back(run(number));
  at_once([&](int64_t number) { got[static_cast<size_t>(number)] = run(number); });
  for (size_t i = 0; i < kRequests; ++i) {
    for (size_t row = 0; row < expected[i].size(); ++row) {
      EXPECT_EQ(got[i][row].log_probabilities, expected[i][row].log_probabilities);
      EXPECT_TRUE(bit_equal(got[i][row].attention, expected[i][row].attention));
    }
  }
}

// A limit that no memory could hold costs nothing, whichever way the model runs.
TEST(Server, ALimitAloneTakesNoMemory) {
  torch::manual_seed(seed(22));
  Transformer model(TransformerOptions(20, 20)
                        .d_model(8)
                        .num_heads(2)
                        .num_encoder_layers(1)
                        .num_decoder_layers(2)
                        .d_ff(8)
                        .position_ids(embeddings::PositionIds::None)
                        .decoder_relative(relative::Buckets{.bidirectional = false}));
  model->eval();
  const auto frozen = freeze(model);
  const auto src = torch::full({2, 3}, 3, torch::kLong);
  for (const int64_t beams : {1, 3}) {
    const auto options = GenerateOptions(kBegin, kEnd)
                             .eos_ids({})
                             .num_beams(beams)
                             .max_new_tokens(int64_t{1} << 40)
                             .length_penalty(0.0)
                             .progress([](const auto& progress) { return progress.step < 40; });
    const TestAllocator counting;
    const auto plain = generate(model, src, {}, options);
    const auto fast = generate(frozen, src, {}, options);
    EXPECT_LT(counting.most(), size_t{1} << 20);
    for (size_t b = 0; b < 2; ++b) EXPECT_EQ(plain[b][0].tokens, fast[b][0].tokens);
  }
}

}  // namespace
}  // namespace posenc::testing
