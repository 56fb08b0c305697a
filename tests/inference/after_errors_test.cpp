// After a call that throws, the next one is right: an exception of the caller's, an id that is
// none, memory that is refused, here and in a thread of its own.

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/threads.h"

namespace {

std::atomic<int64_t> allocations_left{-1};  // before one is refused; negative: none is

bool is_refused() { return allocations_left >= 0 && allocations_left.fetch_sub(1) == 0; }

// LibTorch's allocator, which refuses when asked to.
class Allocator : public c10::Allocator {
 public:
  explicit Allocator(c10::Allocator* own) : own_(own) {}
  c10::DataPtr allocate(size_t bytes) override {
    if (is_refused()) throw std::bad_alloc();
    return own_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return own_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    own_->copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* own_;
};

}  // namespace

// What is aligned to more than a pointer is the library's scratch memory.
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  const auto line = static_cast<std::size_t>(alignment);
  void* const memory =
      is_refused() ? nullptr : std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace posenc {
namespace {

using testing::any_ids;
using testing::any_model;
using testing::bit_equal;
using testing::Dice;
using testing::kPad;

constexpr int64_t kBegin = 1, kEnd = 2;

// Everything that a frozen model does, as one tensor.
torch::Tensor all_of(Transformer model, const FrozenTransformer& frozen, const torch::Tensor& src,
                     int64_t beams) {
  const torch::NoGradGuard no_grad;
  const auto mask = AttentionMask::padding(src, kPad);
  const auto memory = frozen.encode(src, mask);
  std::vector<torch::Tensor> parts = {
      memory.flatten(), frozen.decode(src, memory, AttentionMask::causal(), mask).flatten()};
  const auto options = GenerateOptions(kBegin, kEnd).max_length(12).beams(beams).n_best(beams);
  for (const auto& found :
       {generate(frozen, src, mask, options), generate(*model, src, mask, options)})
    for (const auto& source : found)
      for (const auto& one : source)
        parts.push_back(torch::tensor(one.score, torch::kFloat).unsqueeze(0));
  return torch::cat(parts);
}

class AfterErrors : public ::testing::Test {
 protected:
  Dice dice{11};
  Transformer model = any_model(dice, 11);
  FrozenTransformer frozen = freeze(model);
  torch::Tensor large = any_ids(dice, 14, 30, true), small = any_ids(dice, 2, 3, true);
};

TEST_F(AfterErrors, OfACallback) {
  const auto expected = all_of(model, frozen, large, 3);
  for (const int64_t beams : {1, 3})
    for (const int64_t step : {1, 4}) {
      const auto options = GenerateOptions(kBegin, kEnd)
                               .stop({})
                               .max_length(9)
                               .beams(beams)
                               .progress([&](const GenerateProgress& progress) -> bool {
                                 if (progress.step == step) throw std::runtime_error("enough");
                                 return true;
                               });
      EXPECT_THROW(generate(frozen, large, {}, options), std::runtime_error);
      EXPECT_THROW(generate(*model, large, {}, options), std::runtime_error);
      EXPECT_TRUE(bit_equal(all_of(model, frozen, large, 3), expected));
    }
}

TEST_F(AfterErrors, OfAnIdThatIsNone) {
  const auto expected = all_of(model, frozen, large, 3);
  const auto wrong = large.clone();
  wrong[3][0] = 1000;
  for (const int threads : {1, 3}) {
    const testing::Threads set(threads);
    EXPECT_THROW(frozen.encode(wrong), c10::IndexError);
    EXPECT_THROW(generate(frozen, wrong, {}, GenerateOptions(kBegin, kEnd).max_length(3)),
                 c10::IndexError);
    EXPECT_TRUE(bit_equal(all_of(model, frozen, large, 3), expected));
  }
}

// Refuses the first allocation, then the second, and so on, of a large call; a small one follows on
// the same thread, whose scratch memory the failure has left behind, and the large one again.
TEST_F(AfterErrors, OfMemoryThatIsRefused) {
  Allocator allocator(c10::GetCPUAllocator());
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
  for (const int threads : {1, 2}) {
    const testing::Threads set(threads);
    const auto few = all_of(model, frozen, small, 2), many = all_of(model, frozen, large, 3);
    int64_t refused = 0;
    // Each attempt has a thread of its own, and so new scratch memory. Not every allocation is
    // tried: most are alike.
    for (int64_t attempt = 0, done = 0; done == 0; attempt += 1 + attempt / 8) {
      std::thread([&] {
        at::set_num_threads(threads);
        allocations_left = attempt;
        try {
          all_of(model, frozen, large, 3);
          done = 1;
        } catch (const std::bad_alloc&) {
          ++refused;
        }
        allocations_left = -1;
        EXPECT_TRUE(bit_equal(all_of(model, frozen, small, 2), few)) << attempt;
        EXPECT_TRUE(bit_equal(all_of(model, frozen, large, 3), many)) << attempt;
      }).join();
    }
    EXPECT_GT(refused, 20);
  }
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), /*priority=*/1);
}

TEST_F(AfterErrors, OfAFreezeThatIsRefusedMemory) {
  Allocator allocator(c10::GetCPUAllocator());
  const auto expected = all_of(model, frozen, small, 2);
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
  for (const auto multiplier : {Multiplier::Own, Multiplier::Measured})
    for (int64_t attempt = 0; attempt < 3; ++attempt) {
      allocations_left = attempt;
      try {
        freeze(model, FreezeOptions().multiplier(multiplier));
      } catch (const std::bad_alloc&) {
      }
      allocations_left = -1;
      EXPECT_TRUE(bit_equal(all_of(model, freeze(model), small, 2), expected));
    }
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), /*priority=*/1);
}

}  // namespace
}  // namespace posenc
