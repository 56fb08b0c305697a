// DataParallel: models that differ, wrong use, and processes that fail: a named error on every
// rank, and nobody waits.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/utils.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "posenc/train/data_parallel.h"
#include "support/compare.h"
#include "support/rank_threads.h"
#include "train/parallel/small_model.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;

// How a rank ended: `code` of a GroupError, or the message of another exception.
struct RankOutcome {
  std::optional<GroupErrorCode> code;
  std::string message;
};

// Runs `work` as each rank, whose group is dropped when it throws, and collects the ends.
std::vector<RankOutcome> ends_of(int size, const std::function<void(const RankGroup&)>& work) {
  std::vector<RankOutcome> ends(static_cast<size_t>(size));
  try {
    run_ranks(size, [&](const RankGroup& group) {
      RankOutcome& end = ends[static_cast<size_t>(group.rank())];
      try {
        work(group);
      } catch (const GroupError& error) {
        EXPECT_EQ(error.rank(), group.rank());
        end = {error.code(), error.what()};
        throw;
      } catch (const c10::Error& error) {
        end.message = error.what_without_backtrace();
        throw;
      } catch (const std::exception& error) {
        end.message = error.what();
        throw;
      }
    });
  } catch (const std::exception&) {
    return ends;
  }
  ADD_FAILURE() << "no rank threw";
  return ends;
}

void expect_all(const std::vector<RankOutcome>& ends, GroupErrorCode code,
                const std::string& text) {
  for (const RankOutcome& end : ends) {
    EXPECT_EQ(end.code, code) << end.message;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text, end.message);
  }
}

using Change = std::function<void(SmallModel&)>;

// The last of three ranks changes its model, and has these options.
std::vector<RankOutcome> with_a_change(const Change& change,
                                       const DataParallelOptions& options = {}) {
  return ends_of(3, [&](const RankGroup& group) {
    SmallModel model({});
    if (group.rank() == 2) change(model);
    DataParallel parallel(model, group, group.rank() == 2 ? options : DataParallelOptions());
  });
}

TEST(DataParallelErrors, RanksWithOtherModelsDisagree) {
  const auto disagree = GroupErrorCode::Disagree;
  const auto replace = [](SmallModel& model, const torch::Tensor& value) {
    model.hidden->weight.set_data(value);
  };
  expect_all(with_a_change([&](SmallModel& m) { replace(m, torch::ones({13, 12})); }), disagree,
             "parameter hidden.weight: Float [13, 12] strides [12, 1] requires_grad on cpu");
  expect_all(
      with_a_change([&](SmallModel& m) { replace(m, torch::ones({12, 12}).to(at::kDouble)); }),
      disagree, "parameter hidden.weight: Double [12, 12]");
  expect_all(with_a_change([&](SmallModel& m) { replace(m, torch::ones({12, 12}).t()); }), disagree,
             "parameter hidden.weight: Float [12, 12] strides [1, 12]");
  expect_all(with_a_change([&](SmallModel& m) { m.hidden->weight.set_requires_grad(false); }),
             disagree, "parameter hidden.weight: Float [12, 12] strides [12, 1] on cpu");
  expect_all(with_a_change([&](SmallModel& m) { m.register_parameter("more", torch::ones({1})); }),
             disagree, "parameter more: Float [1]");
  expect_all(with_a_change([&](SmallModel& m) { m.register_buffer("more", torch::ones({1})); }),
             disagree, "buffer more: Float [1]");
  expect_all(ends_of(2,
                     [](const RankGroup& group) {
                       SmallModel model({/*sparse=*/false, /*tied=*/group.rank() == 1});
                       DataParallel parallel(model, group);
                     }),
             disagree, "the same as parameter ");
}

TEST(DataParallelErrors, RanksWithOtherOptionsDisagree) {
  expect_all(ends_of(2,
                     [](const RankGroup& group) {
                       SmallModel model({});
                       DataParallel parallel(
                           model, group, DataParallelOptions().bucket_bytes(1000 + group.rank()));
                     }),
             GroupErrorCode::Disagree, "bucket_bytes 1001");
}

// An error of one rank's own: the others get PeerFailed.
void expect_on_the_last(const std::vector<RankOutcome>& ends, const std::string& text) {
  for (const RankOutcome& end : ends) {
    const bool last = &end == &ends.back();
    EXPECT_EQ(end.code, last ? std::nullopt : std::make_optional(GroupErrorCode::PeerFailed));
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text, end.message);
  }
}

TEST(DataParallelErrors, WhatOneRankCannotStartWithEndsAll) {
  expect_on_the_last(with_a_change([](SmallModel&) {}, DataParallelOptions().bucket_bytes(0)),
                     "bucket_bytes must be positive. Got 0");
  expect_on_the_last(with_a_change([](SmallModel& model) {
                       model.register_parameter("more", torch::ones({1}, torch::kMeta));
                     }),
                     "parameters must be dense tensors with data. Got more of Strided on meta");
}

TEST(DataParallelErrors, RefusesParametersThatHaveAHook) {
  run_ranks(2, [](const RankGroup& group) {
    SmallModel model({});
    const DataParallel first(model, group);
    EXPECT_ERROR(DataParallel(model, group), c10::ValueError,
                 "parameters must have no post-accumulate hook");
  });
}

TEST(DataParallelErrors, RefusesASecondBackwardBeforeFinish) {
  for (const bool goes_on : {false, true}) {
    const auto ends = ends_of(2, [&](const RankGroup& group) {
      SmallModel model({});
      DataParallel parallel(model, group);
      model.hidden->bias.sum().backward();
      if (!goes_on) return model.hidden->bias.sum().backward();
      EXPECT_THROW(model.hidden->bias.sum().backward(), c10::ValueError);
      parallel.finish();
    });
    for (const RankOutcome& end : ends) {
      EXPECT_PRED_FORMAT2(::testing::IsSubstring,
                          "backward() must be called once before finish(); pause() all "
                          "micro-batches but the last",
                          end.message);
    }
  }
}

// What one rank alone cannot exchange is an error on all, and the group and the model stay usable.
TEST(DataParallelErrors, WhatOneRankCannotSumIsAnErrorOnAll) {
  struct Case {
    std::string text;
    std::function<void(SmallModel&)> before;  // finish(), on the last rank
    torch::Tensor extra;                      // of the last rank
  };
  const Case cases[] = {
      {"create_graph is not supported",
       [](SmallModel& model) {
         model.sometimes->bias.mutable_grad() = torch::ones({kSmallWidth}).requires_grad_();
       },
       {}},
      {"backward() must be called once before finish()",
       [](SmallModel& model) {
         EXPECT_THROW(model.hidden->bias.sum().backward(), c10::ValueError);
       },
       {}},
      {"extra must have at most 64 numbers. Got 65", nullptr, torch::ones({65})},
      {"extra must be a contiguous float32 tensor. Got Long of [2]", nullptr,
       torch::ones({2}, torch::kLong)},
  };
  for (const int64_t bucket_bytes : {1, 1 << 20}) {
    run_ranks(3, [&](const RankGroup& group) {
      const bool last = group.rank() == 2;
      SmallModel model({});
      DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(bucket_bytes));
      const auto step = [&](const Case* fails) {
        model.zero_grad();
        model.hidden->bias.sum().backward();
        if (fails && last && fails->before) fails->before(model);
        const auto extra = fails && last && fails->extra.defined() ? fails->extra : torch::ones(2);
        parallel.finish(extra);
        EXPECT_TRUE(bit_equal(extra, torch::full({2}, 3.0f)));
        EXPECT_TRUE(bit_equal(model.hidden->bias.grad(), torch::full({kSmallWidth}, 3.0f)));
      };
      step(nullptr);
      for (const Case& one : cases) {
        try {
          step(&one);
          ADD_FAILURE() << "nothing was thrown: " << one.text;
        } catch (const GroupError& error) {
          EXPECT_FALSE(last) << error.what();
          EXPECT_EQ(error.code(), GroupErrorCode::PeerFailed) << error.what();
          EXPECT_PRED_FORMAT2(::testing::IsSubstring, "rank 2 failed. Got: [DataParallel] ",
                              error.what());
          EXPECT_PRED_FORMAT2(::testing::IsSubstring, one.text, error.what());
        } catch (const c10::Error& error) {
          EXPECT_TRUE(last) << error.what();
          EXPECT_PRED_FORMAT2(::testing::IsSubstring, one.text, error.what());
        }
        step(nullptr);
      }
    });
  }
}

TEST(DataParallelErrors, RefusesGradientsThatItCannotSum) {
  const auto refused = [](const std::function<void(torch::Tensor&)>& change) {
    std::string message;
    run_ranks(2, [&](const RankGroup& group) {
      SmallModel model({});
      DataParallel parallel(model, group);
      torch::Tensor& weight = model.hidden->weight;
      const std::string own = message_of([&] {
        change(weight);
        parallel.finish();
      });
      if (group.rank() == 0) message = own;
    });
    return message;
  };
  const auto is_refused = [&](const std::string& text,
                              const std::function<void(torch::Tensor&)>& change) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text, refused(change));
  };
  is_refused("gradients must be dense or sparse (COO). Got SparseCsr",
             [](torch::Tensor& weight) { weight.mutable_grad() = torch::eye(12).to_sparse_csr(); });
  is_refused(
      "gradients must be of [12, 12], Float on cpu, as their parameter was at construction. "
      "Got [3, 12], Float on cpu",
      [](torch::Tensor& weight) {
        weight.set_data(torch::ones({3, 12}));
        weight.sum().backward();
      });
  is_refused("Got [12, 12], Double on cpu", [](torch::Tensor& weight) {
    weight.set_data(weight.detach().to(torch::kDouble));
    weight.mutable_grad() = torch::ones({12, 12}, torch::kDouble);
  });
  is_refused("create_graph is not supported", [](torch::Tensor& weight) {
    weight.mutable_grad() = torch::ones({12, 12}).requires_grad_();
  });
}

TEST(DataParallelErrors, RefusesToBroadcastBuffersThatDiffer) {
  run_ranks(2, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group);
    if (group.rank() == 1) model.named_buffers()["mean"].set_data(torch::ones({7}));
    try {
      parallel.broadcast_buffers();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const GroupError& error) {
      EXPECT_EQ(error.code(), GroupErrorCode::Disagree);
      EXPECT_PRED_FORMAT2(::testing::IsSubstring, "buffer mean: Float [7]", error.what());
    }
  });
}

TEST(DataParallelErrors, RefusesOtherExtraNumbers) {
  SmallModel model({});
  DataParallel parallel(model, {});
  EXPECT_ERROR(parallel.finish(torch::ones({2}, torch::kDouble)), c10::TypeError,
               "extra must be a contiguous float32 tensor. Got Double of [2]");
  EXPECT_ERROR(parallel.finish(torch::ones({2, 3}).t()), c10::TypeError, "strides [1, 3]");
  EXPECT_ERROR(parallel.finish(torch::ones({5, 13})), c10::ValueError,
               "extra must have at most 64 numbers. Got 65");
}

// Throws in the middle of a backward pass on the last rank.
torch::Tensor loss_with(SmallModel& model, bool throws) {
  auto x = model.hidden(torch::ones({2, kSmallWidth}));
  if (throws) {
    x.register_hook([](const torch::Tensor& gradient) -> torch::Tensor {
      if (gradient.defined()) throw std::range_error("this rank's own");
      return gradient;
    });
  }
  return (model.sometimes(x) + model.output.sum()).sum();
}

TEST(DataParallelErrors, ARankThatThrowsWakesTheOthers) {
  for (const int size : {2, 3}) {
    const auto ends = ends_of(size, [&](const RankGroup& group) {
      SmallModel model({});
      DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(1));
      loss_with(model, group.rank() + 1 == size).backward();
      parallel.finish();
    });
    for (const RankOutcome& end : ends) {
      if (&end == &ends.back()) {
        EXPECT_EQ(end.message, "this rank's own");
      } else {
        EXPECT_EQ(end.code, GroupErrorCode::PeerLost) << end.message;
        EXPECT_PRED_FORMAT2(::testing::IsSubstring, "[DataParallel] rank ", end.message);
      }
    }
  }
}

// What its hooks started is dropped by the destructor, which is called before the group's.
TEST(DataParallelErrors, ARankThatEndsTooEarlyWakesTheOthers) {
  const auto ends = ends_of(2, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(1));
    for (int step = 0;; ++step) {
      loss_with(model, false).backward();
      if (step == 2 && group.rank() == 1) throw std::range_error("the end");
      parallel.finish();
      model.zero_grad();
    }
  });
  EXPECT_EQ(ends[0].code, GroupErrorCode::PeerLost) << ends[0].message;
  EXPECT_EQ(ends[1].message, "the end");
}

// A rank that does not throw but stays away: the group's time-out.
TEST(DataParallelErrors, ARankThatStaysAwayIsTimedOut) {
  std::vector<RankOutcome> ends(2);
  run_ranks(2, [&](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group);
    if (group.rank() == 1) return;  // its group lives until all have ended
    testing::set_timeout(group, std::chrono::seconds(1));
    try {
      parallel.finish();
    } catch (const GroupError& error) {
      ends[0].code = error.code();
    }
    EXPECT_THROW(parallel.finish(), GroupError);
  });
  EXPECT_EQ(ends[0].code, GroupErrorCode::TimedOut);
}

// A caught error of the rank's own does not end the step: what its gradients hold is added.
TEST(DataParallelErrors, AFailedRankMayTakePart) {
  run_ranks(3, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group, DataParallelOptions().bucket_bytes(1));
    for (int step = 0; step < 3; ++step) {
      const bool fails = step == 1 && group.rank() == 2;
      const auto failed = torch::zeros({1});
      try {
        loss_with(model, fails).backward();
      } catch (const std::range_error&) {
        failed.fill_(1.0);
      }
      parallel.finish(failed);
      EXPECT_EQ(failed.item<double>(), step == 1 ? 1.0 : 0.0);
      EXPECT_TRUE(bit_equal(model.sometimes->bias.grad(), torch::full({kSmallWidth}, 6.0f)));
      const auto one = torch::autograd::grad({loss_with(model, false)}, {model.hidden->bias})[0];
      EXPECT_TRUE(within(Op::Gradient, model.hidden->bias.grad(), one * (step == 1 ? 2 : 3)));
      model.zero_grad();
    }
  });
}

}  // namespace
}  // namespace posenc::testing
