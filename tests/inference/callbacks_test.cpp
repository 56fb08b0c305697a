// What the callback of generate() may do to the model, the handle and the options.

#include <gtest/gtest.h>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

const GenerateOptions kSearches[] = {
    GenerateOptions(1, 2).eos_ids({}).max_new_tokens(6),
    GenerateOptions(1, 2).eos_ids({}).max_new_tokens(6).num_beams(3).num_return_sequences(2)};

torch::Tensor source() { return torch::tensor({{3, 4, 5}, {6, 7, 8}}); }

// The search with `change` called at its second step.
template <typename Model, typename Change>
std::vector<std::vector<Hypothesis>> changed_at_two(Model&& model, GenerateOptions search,
                                                    const Change& change) {
  search.progress([&](const GenerateProgress& progress) {
    if (progress.step == 2) change();
    return true;
  });
  return generate(model, source(), {}, search);
}

void expect_equal(const std::vector<std::vector<Hypothesis>>& got,
                  const std::vector<std::vector<Hypothesis>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t b = 0; b < got.size(); ++b) {
    ASSERT_EQ(got[b].size(), expected[b].size());
    for (size_t i = 0; i < got[b].size(); ++i) EXPECT_EQ(got[b][i].tokens, expected[b][i].tokens);
  }
}

TEST(GenerateCallback, MayAssignAnotherModelToTheHandle) {
  for (const auto& search : kSearches) {
    auto frozen = freeze(tiny_model(tiny(), 1));
    const auto expected = generate(frozen, source(), {}, search);
    const auto other = freeze(tiny_model(tiny(), 2));
    expect_equal(changed_at_two(frozen, search, [&] { frozen = other; }), expected);
    auto model = tiny_model(tiny(), 1);
    expect_equal(changed_at_two(model, search, [&] { model = tiny_model(tiny(), 2); }), expected);
    model = tiny_model(tiny(), 1);
    expect_equal(changed_at_two(*model, search, [&] { model = nullptr; }), expected);
  }
}

TEST(GenerateCallback, MayNotChangeAFrozenModel) {
  for (const auto& search : kSearches) {
    for (const int64_t step : {2, 6}) {  // and after the last token
      auto model = tiny_model();
      const auto frozen = freeze(model);
      auto changing = search;
      changing.progress([&](const GenerateProgress& progress) {
        const torch::NoGradGuard no_grad;
        if (progress.step == step) model->final_layer->bias.mul_(2.0);
        return true;
      });
      EXPECT_ERROR(generate(frozen, source(), {}, changing), c10::Error, "freeze it again");
    }
  }
}

// Before the next step computes with the new weights: no criterion sees a token of theirs.
TEST(GenerateCallback, ACriterionMayNotChangeTheModel) {
  for (const auto& search : kSearches) {
    for (const bool is_frozen : {true, false}) {
      auto model = tiny_model();
      const auto frozen = freeze(model);
      std::size_t longest = 0;
      auto changing = search;
      changing.stopping_criteria([&](const std::vector<int64_t>& columns) {
        const torch::NoGradGuard no_grad;
        longest = std::max(longest, columns.size());
        if (columns.size() < 3) return false;
        if (is_frozen)
          model->final_layer->bias.mul_(2.0);
        else
          model->train();
        return false;
      });
      if (is_frozen) {
        EXPECT_ERROR(generate(frozen, source(), {}, changing), c10::Error, "freeze it again");
      } else {
        EXPECT_ERROR(generate(model, source(), {}, changing), c10::ValueError,
                     "[generate] the model must be in eval mode");
      }
      EXPECT_EQ(longest, 3u);
    }
  }
}

TEST(GenerateCallback, MayNotSwitchToTraining) {
  for (const auto& search : kSearches) {
    auto model = tiny_model();
    EXPECT_ERROR(changed_at_two(model, search, [&] { model->train(); }), c10::ValueError,
                 "[generate] the model must be in eval mode");
  }
}

TEST(GenerateCallback, DoesNotReachTheOptionsOfItsOwnSearch) {
  for (const bool is_frozen : {true, false}) {
    for (const auto& search : kSearches) {
      auto model = tiny_model();
      const auto frozen = freeze(model);
      const auto run = [&](const GenerateOptions& options) {
        return is_frozen ? generate(frozen, source(), {}, options)
                         : generate(model, source(), {}, options);
      };
      const auto expected = run(search);
      auto changing = search;
      int64_t calls = 0;
      changing.progress([&, big = std::vector<int64_t>(100, 7)](const GenerateProgress&) {
        changing.max_new_tokens(12).num_return_sequences(5).eos_ids({3, 4}).progress(nullptr);
        calls += big.back() == 7 ? 1 : 100;  // its captures are alive
        return true;
      });
      expect_equal(run(changing), expected);
      EXPECT_EQ(calls, 6);
    }
  }
}

}  // namespace
}  // namespace posenc::testing
