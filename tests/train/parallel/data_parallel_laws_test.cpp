// DataParallel: what it promises beside sums: aliases, extra numbers, kinds of gradients that
// change from step to step, dtypes, and its end.

#include <gtest/gtest.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/torch_internals/grad_access.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/positions/functional/embed.h"
#include "posenc/train/data_parallel.h"
#include "support/compare.h"
#include "support/rank_threads.h"
#include "train/parallel/small_model.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;

// Parameters of a module, without a forward.
struct SomeParameters : torch::nn::Module {
  explicit SomeParameters(const std::vector<torch::Tensor>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      all.push_back(register_parameter("p" + std::to_string(i), values[i].clone(),
                                       values[i].is_floating_point() || values[i].is_complex()));
  }
  std::vector<torch::Tensor> all;
};

torch::Tensor numbers(const RankGroup& group, std::vector<int64_t> sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return torch::arange(count, torch::kFloat).view(sizes) + static_cast<double>(group.rank());
}

TEST(DataParallel, GradientsAreAliasesThatMayBeClearedOrDropped) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({3, 4}), torch::ones({4, 3}).t(), torch::ones({5})});
    DataParallel parallel(model, group);
    torch::optim::SGD optimizer(model.all, 0.1);
    std::vector<const void*> addresses;
    for (int step = 0; step < 4; ++step) {
      torch::Tensor loss = torch::zeros({});
      for (const auto& p : model.all) loss = loss + (p * (group.rank() + 1)).sum();
      loss.backward();
      parallel.finish();
      for (size_t i = 0; i < model.all.size(); ++i) {
        const auto& p = model.all[i];
        EXPECT_TRUE(bit_equal(p.grad(), torch::full_like(p, 3.0))) << step << ", " << i;
        EXPECT_EQ(p.grad().strides(), p.strides());
        if (step == 0) addresses.push_back(p.grad().const_data_ptr());
        EXPECT_EQ(p.grad().const_data_ptr(), addresses[i]) << "copied once, not twice";
        EXPECT_EQ(reinterpret_cast<uintptr_t>(addresses[i]) % 64, 0);
      }
      optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
    }
  });
}

// The fused embedding adds to the alias directly: rows without a token keep their -0.0, and a
// tensor of the table's size is never made. (The ordinary way adds a tensor of zeros.)
TEST(DataParallel, TheFusedEmbeddingAddsToTheAliasInPlace) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({50, 8})});
    const torch::Tensor& table = model.all[0];
    DataParallel parallel(model, group);
    const auto ids = torch::full({1, 3}, 4 + group.rank(), torch::kLong);
    const auto step = [&] {
      functional::embed(ids, table, torch::zeros({3, 8})).sum().backward();
      parallel.finish();
    };
    step();
    table.grad().fill_(-0.0);
    step();
    EXPECT_TRUE(bit_equal(table.grad().slice(0, 4, 6), torch::full({2, 8}, 3.0f)));
    // LibTorch before 2.13 takes no gradient in place from an operation beside a hook.
    const float kept = torch_internals::kHooksFollowUndefinedGradients ? -0.0F : 0.0F;
    EXPECT_TRUE(bit_equal(table.grad().slice(0, 0, 4), torch::full({4, 8}, kept)));
    EXPECT_TRUE(bit_equal(table.grad().slice(0, 6), torch::full({44, 8}, kept)));
  });
}

TEST(DataParallel, SumsExtraNumbers) {
  run_ranks(3, [](const RankGroup& group) {
    SomeParameters model({torch::ones({3})});
    DataParallel parallel(model, group);
    for (int step = 0; step < 3; ++step) {
      const auto extra = numbers(group, {2, 32});
      parallel.finish(extra);
      EXPECT_TRUE(bit_equal(extra, 3 * torch::arange(64, torch::kFloat).view({2, 32}) + 3.0));
      EXPECT_FALSE(model.all[0].grad().defined());
      const auto one = torch::ones({});
      parallel.finish(one);
      EXPECT_EQ(one.item<double>(), 3.0);
      parallel.finish(torch::empty({0}));
      parallel.finish();
    }
  });
  SomeParameters model({torch::ones({3})});
  DataParallel alone(model, {});
  const auto extra = torch::full({2}, 7.0f);
  model.all[0].sum().backward();
  alone.finish(extra);
  EXPECT_TRUE(bit_equal(extra, torch::full({2}, 7.0f)));
  EXPECT_TRUE(bit_equal(model.all[0].grad(), torch::ones({3})));
}

// A module without a trained parameter, and one without any, sum extra numbers all the same.
TEST(DataParallel, ServesModulesWithNothingToTrain) {
  run_ranks(2, [](const RankGroup& group) {
    for (const int count : {0, 2}) {
      SomeParameters model(
          std::vector<torch::Tensor>(static_cast<size_t>(count), torch::ones({3}, torch::kLong)));
      DataParallel parallel(model, group);
      const auto extra = torch::ones({1});
      parallel.finish(extra);
      EXPECT_EQ(extra.item<double>(), 2.0);
    }
  });
}

torch::Tensor rows_gradient(int64_t row, double value) {
  return torch::sparse_coo_tensor(torch::tensor({{row, row}}), torch::full({2, 3}, value / 2),
                                  {5, 3});
}

// Each rank and step may have a dense, a sparse or no gradient.
TEST(DataParallel, KindsOfGradientsMayDifferAndChange) {
  enum Kind { kNone, kDense, kSparse };
  const std::vector<std::vector<Kind>> steps = {
      {kSparse, kSparse, kSparse}, {kSparse, kNone, kSparse}, {kNone, kDense, kNone},
      {kDense, kSparse, kNone},    {kNone, kNone, kNone},     {kSparse, kSparse, kDense},
      {kNone, kSparse, kNone},     {kDense, kDense, kDense}};
  for (const bool frozen : {false, true}) {
    run_ranks(3, [&](const RankGroup& group) {
      SomeParameters model({torch::ones({5, 3}), torch::ones({2})});
      const torch::Tensor& p = model.all[0];
      p.set_requires_grad(!frozen);
      DataParallel parallel(model, group);
      p.set_requires_grad(true);
      for (const auto& kinds : steps) {
        bool any = false, dense = false;
        auto expected = torch::zeros({5, 3});
        for (int rank = 0; rank < 3; ++rank) {
          const Kind kind = kinds[static_cast<size_t>(rank)];
          any |= kind != kNone, dense |= kind == kDense;
          if (kind == kDense) expected += rank + 1;
          if (kind == kSparse) expected[rank] += 2.0 * (rank + 1);
        }
        const Kind own = kinds[static_cast<size_t>(group.rank())];
        const double value = group.rank() + 1;
        if (own == kDense) p.mutable_grad() = torch::full({5, 3}, value);
        if (own == kSparse) p.mutable_grad() = rows_gradient(group.rank(), 2.0 * value);
        parallel.finish();
        ASSERT_EQ(p.grad().defined(), any);
        if (any) {
          EXPECT_EQ(p.grad().is_sparse(), !dense);
          EXPECT_TRUE(p.grad().is_sparse() ? p.grad().is_coalesced() : true);
          EXPECT_TRUE(bit_equal(p.grad().to_dense(), expected));
        }
        p.mutable_grad().reset();
      }
    });
  }
}

TEST(DataParallel, AParameterFrozenLaterKeepsItsGradient) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({5, 3}), torch::ones({2})});
    const torch::Tensor &frozen = model.all[0], &trained = model.all[1];
    DataParallel parallel(model, group);
    for (const torch::Tensor& p : {frozen, trained}) p.mutable_grad() = torch::ones_like(p);
    parallel.finish();
    frozen.set_requires_grad(false);
    for (int step = 0; step < 2; ++step) {
      trained.mutable_grad() = torch::ones_like(trained);
      parallel.finish();
      EXPECT_TRUE(bit_equal(frozen.grad(), torch::full({5, 3}, 2.0)));
      EXPECT_TRUE(bit_equal(trained.grad(), torch::full({2}, 2.0)));
    }
  });
}

TEST(DataParallel, TakesSparseGradientsOfWholeElements) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({5, 3})});
    DataParallel parallel(model, group);
    auto dense = torch::zeros({5, 3});
    dense[group.rank()][1] = 4.0;
    dense[3][2] = 1.0;
    model.all[0].mutable_grad() = dense.to_sparse();
    parallel.finish();
    auto expected = torch::zeros({5, 3});
    expected[0][1] = expected[1][1] = 4.0;
    expected[3][2] = 2.0;
    EXPECT_TRUE(bit_equal(model.all[0].grad().to_dense(), expected));
  });
}

TEST(DataParallel, SumsEveryDtype) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({3}), torch::ones({4, 2}, torch::kDouble),
                          torch::ones({7}, torch::kBFloat16), torch::ones({5}, torch::kHalf),
                          torch::ones({2, 3}, torch::kComplexFloat), torch::ones({1}),
                          torch::ones({0, 4})});
    DataParallel parallel(model, group);
    for (int step = 0; step < 2; ++step) {
      for (const auto& p : model.all)
        p.mutable_grad() = torch::full_like(p, group.rank() + 1.5).detach();
      parallel.finish();
      for (const auto& p : model.all)
        EXPECT_TRUE(p.grad().equal(torch::full_like(p, 4.0))) << p.scalar_type();
    }
  });
}

TEST(DataParallel, SendsRankZerosBuffersAgain) {
  run_ranks(3, [](const RankGroup& group) {
    SmallModel model({});
    DataParallel parallel(model, group);
    const auto names = model.named_buffers();
    std::vector<torch::Tensor> expected;
    for (const auto& item : names) {
      expected.push_back(item.value() + 1);
      item.value().add_(group.rank() + 1);
    }
    parallel.broadcast_buffers();
    for (size_t i = 0; i < names.size(); ++i)
      EXPECT_TRUE(bit_equal(names[i].value(), expected[i])) << names[i].key();
  });
}

TEST(DataParallel, EndsWithItsHooks) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({3}), torch::ones({4})});
    for (int round = 0; round < 2; ++round) {
      DataParallel parallel(model, group);
      (model.all[0].sum() + model.all[1].sum()).backward();
      parallel.finish();
      EXPECT_TRUE(bit_equal(model.all[0].grad(), torch::full({3}, 2.0f)));
      model.zero_grad();
    }
    model.all[0].sum().backward();
    EXPECT_TRUE(bit_equal(model.all[0].grad(), torch::ones({3})));
    EXPECT_NO_THROW(model.zero_grad(/*set_to_none=*/false));
  });
}

TEST(DataParallel, PausesNestAndMove) {
  run_ranks(2, [](const RankGroup& group) {
    SomeParameters model({torch::ones({3})});
    auto parallel = std::make_unique<DataParallel>(model, group);
    {
      auto outer = parallel->pause();
      model.all[0].sum().backward();
      { const auto inner = parallel->pause(); }
      const DataParallelPause moved = std::move(outer);
      model.all[0].sum().backward();
    }
    model.all[0].sum().backward();
    parallel->finish();
    EXPECT_TRUE(bit_equal(model.all[0].grad(), torch::full({3}, 6.0f)));
    const auto longer = parallel->pause();
    parallel.reset();
  });
}

}  // namespace
}  // namespace posenc::testing
