// A step that throws changes nothing, and the next one is correct: state that may not be written,
// failed allocations, a schedule that throws.

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <string>
#include <typeinfo>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"
#include "posenc/train/trainer.h"
#include "support/compare.h"
#include "support/temp_dir.h"
#include "support/test_allocator.h"
#include "support/threads.h"

namespace posenc::testing {
namespace {

// The gradient of a step: dense, dense with another memory order than its parameter, or sparse.
enum class Kind { Dense, Turned, Sparse };

at::Tensor gradient_of(const at::Tensor& p, Kind kind, int64_t step) {
  const auto numbers = at::arange(p.numel(), at::kFloat).sin().view(p.sizes()) / (1.0 + step);
  if (kind == Kind::Dense) return numbers;
  if (kind == Kind::Turned) return numbers.t().contiguous().t();
  const auto rows = (at::arange(p.size(0) / 2 + 2, at::kLong) * 3 + step) % p.size(0);
  return at::sparse_coo_tensor(rows.unsqueeze(0), numbers.index_select(0, rows), p.sizes());
}

// Two parameters in separate groups: an error in the second must not change the first.
template <typename Optimizer, typename Options>
struct Two {
  Two(const Options& options, Kind of, int64_t rows = 7)
      : kind(of),
        p{at::ones({rows, 5}).set_requires_grad(true), at::ones({rows, 5}).set_requires_grad(true)},
        optimizer(
            {torch::optim::OptimizerParamGroup({p[0]}), torch::optim::OptimizerParamGroup({p[1]})},
            options) {}

  void step(bool first = true, bool second = true) {
    p[0].mutable_grad() = first ? gradient_of(p[0], kind, steps) : at::Tensor();
    p[1].mutable_grad() = second ? gradient_of(p[1], kind, steps) : at::Tensor();
    optimizer.step();
    ++steps;
  }
  std::vector<at::Tensor> values() const { return {p[0].detach().clone(), p[1].detach().clone()}; }

  Kind kind;
  int64_t steps = 0;
  at::Tensor p[2];
  Optimizer optimizer;
};

void expect_equal(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected) {
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(bit_equal(got[i], expected[i])) << i;
}

template <typename Check>
void for_each_rule(Check&& check) {
  for (const Kind dense : {Kind::Dense, Kind::Turned}) {
    check.template operator()<FusedAdam>(FusedAdamOptions(0.1), dense);
    check.template operator()<FusedAdam>(FusedAdamOptions(0.1).amsgrad(true), dense);
    check.template operator()<FusedAdamW>(FusedAdamWOptions(0.1), dense);
    check.template operator()<FusedSGD>(FusedSGDOptions(0.1).momentum(0.9).dampening(0.5), dense);
  }
  check.template operator()<FusedSGD>(FusedSGDOptions(0.1).momentum(0.9), Kind::Sparse);
  check.template operator()<SparseAdam>(SparseAdamOptions(0.1), Kind::Sparse);
}

TEST(AfterErrors, UnwritableState) {
  for_each_rule([]<typename Optimizer>(const auto& options, Kind kind) {
    SCOPED_TRACE(std::string(typeid(options).name()) + " " +
                 std::to_string(static_cast<int>(kind)));
    using Options = std::decay_t<decltype(options)>;
    Two<Optimizer, Options> tried(options, kind), counterpart(options, kind);
    const auto begin = [](auto& one) {
      one.step(true, false);
      const c10::InferenceMode guard;
      one.step(false, true);  // creates state in InferenceMode
    };
    begin(tried), begin(counterpart);
    const auto before = tried.values();
    const auto versions = std::vector{tried.p[0]._version(), tried.p[1]._version()};
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_ERROR(tried.step(), c10::ValueError,
                   "parameter 0 of group 1, [7, 5]: its state must not be an inference tensor");
    }
    expect_equal(tried.values(), before);
    EXPECT_EQ((std::vector{tried.p[0]._version(), tried.p[1]._version()}), versions);
    const c10::InferenceMode guard;
    for (auto* one : {&tried, &counterpart}) one->step(), one->step();
    expect_equal(tried.values(), counterpart.values());
  });
}

// Fails the first allocation of a step, then the second, and so on; in the first step, which
// creates the state, and in a later one.
TEST(AfterErrors, FailedAllocations) {
  const Threads one_thread(1);
  for_each_rule([]<typename Optimizer>(const auto& options, Kind kind) {
    SCOPED_TRACE(std::string(typeid(options).name()) + " " +
                 std::to_string(static_cast<int>(kind)));
    if (kind == Kind::Sparse) return;  // rows updated before the failure stay updated
    using Options = std::decay_t<decltype(options)>;
    for (const int64_t earlier : {0, 2}) {
      Two<Optimizer, Options> counterpart(options, kind);
      for (int64_t step = 0; step < earlier + 2; ++step) counterpart.step(true, false);
      int64_t refused = 0;
      for (int64_t attempt = 0, done = 0; done == 0; ++attempt) {
        Two<Optimizer, Options> tried(options, kind);
        for (int64_t step = 0; step < earlier; ++step) tried.step(true, false);
        const auto before = tried.values();
        tried.p[0].mutable_grad() = gradient_of(tried.p[0], kind, tried.steps);
        int64_t left = -1;
        {
          const TestAllocator allocator([&] { return left >= 0 && left-- == 0; });
          left = attempt;
          try {
            tried.optimizer.step();
            done = 1;
          } catch (const std::bad_alloc&) {
            ++refused;
          }
        }
        if (done == 1) break;
        expect_equal(tried.values(), before);
        for (int64_t step = 0; step < 2; ++step) tried.step(true, false);
        expect_equal(tried.values(), counterpart.values());
      }
      EXPECT_TRUE(refused > 0 || earlier > 0) << "a later step may need no memory";
    }
  });
}

// A thread of the pool does not inherit its caller's InferenceMode.
TEST(SparseAdam, MovesManyRowsInInferenceMode) {
  const Threads two(2);
  const auto run = [](bool inference, bool of_inference) {
    const c10::InferenceMode making(of_inference);
    auto p = at::ones({9000, 8});
    const c10::InferenceMode stepping(inference);
    SparseAdam optimizer({p}, 0.1);
    for (int64_t step = 0; step < 2; ++step) {
      p.mutable_grad() = gradient_of(p, Kind::Sparse, step);
      optimizer.step();
    }
    return p;
  };
  const auto expected = run(false, false);
  EXPECT_TRUE(bit_equal(run(true, false), expected));
  EXPECT_TRUE(bit_equal(run(true, true), expected));
}

class Schedule : public torch::optim::LRScheduler {
 public:
  Schedule(torch::optim::Optimizer& optimizer, int64_t failing)
      : LRScheduler(optimizer), failing_(failing) {}

 private:
  std::vector<double> get_lrs() override {
    TORCH_CHECK(++calls_ % 4 != failing_, "no rate today");
    return {1.0 / (2.0 + step_count_)};
  }
  int64_t calls_ = 0, failing_;
};

struct Followed {
  torch::Tensor weight;
  std::vector<int64_t> reports;
  std::vector<double> losses;
  int64_t failures = 0, saved = 0;
};

Followed follow(int64_t failing) {
  const TempDir dir;
  torch::manual_seed(3);
  torch::nn::Linear model(2, 2);
  FusedSGD optimizer(model->parameters(), 0.5);
  Schedule schedule(optimizer, failing);
  const std::vector<TokenPair> pairs = {{{1, 2}, {1, 2}}, {{3}, {1, 4}}, {{5, 6, 7}, {1, 2, 3}}};
  PairLoader loader(pairs, PairLoaderOptions().max_rows(1));
  Followed found;
  const auto loss = [&](const PairBatch& batch) {
    return (model->weight * static_cast<double>(batch.tokens)).square().sum() * 1e-3;
  };
  Trainer trainer({*model, &optimizer, &schedule}, loader, loss,
                  TrainerOptions(11).report_every(3).checkpoint(dir / "c").report(
                      [&](const TrainingProgress& progress) {
                        found.reports.push_back(progress.step);
                        found.losses.push_back(progress.loss);
                      }));
  for (bool done = false; !done && found.failures < 100;) {
    try {
      done = trainer.train();
    } catch (const c10::Error&) {
      ++found.failures;
    }
  }
  EXPECT_EQ(trainer.step(), 11);
  found.weight = model->weight.detach().clone();
  found.saved = Trainer::saved_run(dir / "c").step;
  return found;
}

// Each step is done exactly once: what follows a step is done when the scheduler works again.
TEST(Trainer, ASchedulerThatThrowsLosesNoRate) {
  const auto expected = follow(-1);
  EXPECT_EQ(expected.failures, 0);
  EXPECT_EQ(expected.reports, (std::vector<int64_t>{3, 6, 9, 11}));
  for (const int64_t failing : {0, 1, 2, 3}) {
    const auto found = follow(failing);
    EXPECT_GT(found.failures, 1);
    EXPECT_TRUE(bit_equal(found.weight, expected.weight)) << failing;
    EXPECT_EQ(found.reports, expected.reports);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_EQ(found.saved, 11);
  }
}

}  // namespace
}  // namespace posenc::testing
