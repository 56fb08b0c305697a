// Memory of results that bypasses LibTorch's allocator must behave like its own. A new LibTorch may
// change what c10 expects of a Storage (its deleter, resizing, the report of its size) and how a
// tensor is made of one.

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <memory>
#include <set>

#include "core/torch_internals/fresh_memory.h"

namespace posenc::torch_internals {
namespace {

struct Memory : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* at, int64_t size, size_t, size_t, c10::Device) override {
    if (size > 0) seen.insert(at);
    if (size < 0) seen.erase(at);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::set<const void*> seen;
};

// `make` returns (rows, columns) in memory of its own; resizing gives it `more` rows.
template <typename Make>
void expect_good_memory(Make make, int64_t more) {
  const auto memory = std::make_shared<Memory>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory);
  torch::Tensor made = make();
  const void* const address = made.const_data_ptr();
  const int64_t rows = made.size(0);
  EXPECT_EQ(memory->seen, std::set<const void*>{address});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % 64, 0u);
  EXPECT_TRUE(made.is_contiguous());
  EXPECT_EQ(made._version(), 0);
  EXPECT_EQ(made.storage().nbytes(), made.nbytes());
  made.fill_(3);
  made.resize_({more, made.size(1)});
  EXPECT_EQ(memory->seen.count(address), 0u);
  EXPECT_TRUE(made.slice(0, 0, rows).eq(3).all().item<bool>());
  made = torch::Tensor();
  EXPECT_TRUE(memory->seen.empty());
}

TEST(FreshMemory, LargeGradientsAreReportedAndResizable) {
  expect_good_memory([] { return lazy_zeros(4100, 2500, torch::kFloat); },
                     4200);  // 41 MB
  EXPECT_EQ(lazy_zeros(4100, 2500, torch::kFloat).count_nonzero().item<int64_t>(), 0);
}

TEST(FreshMemory, SmallOutputsAreReportedAndResizable) {
  for (const int64_t rows : {1, 3, 100, 10000}) {
    for (const auto dtype : {torch::kFloat, torch::kDouble, torch::kHalf})
      expect_good_memory([&] { return fresh_output({rows, 7}, dtype); }, 2 * rows);
  }
}

TEST(FreshMemory, RejectsImpossibleSizes) {
  EXPECT_EQ(fresh_output({3, 0}, torch::kFloat).sizes(), (std::vector<int64_t>{3, 0}));
  EXPECT_THROW(fresh_output({int64_t{1} << 33, int64_t{1} << 31}, torch::kFloat), c10::Error);
  EXPECT_THROW(fresh_output({int64_t{1} << 62, 1}, torch::kDouble), c10::Error);
  EXPECT_THROW(fresh_output({-1, 4}, torch::kFloat), c10::Error);
  EXPECT_THROW(fresh_output({-1, -4}, torch::kFloat), c10::Error);
}

struct Counting : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    ++count;
    return c10::GetDefaultCPUAllocator()->allocate(bytes);
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  int count = 0;
};

TEST(FreshMemory, ComesFromTheAllocatorThatWasSet) {
  static Counting allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
  const auto small = fresh_output({2, 3}, torch::kFloat);
  const auto large = lazy_zeros(4100, 2500, torch::kFloat);
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), /*priority=*/1);
  EXPECT_EQ(allocator.count, 2);
  fresh_output({2, 3}, torch::kFloat);
  EXPECT_EQ(allocator.count, 2);
}

// Our tensors have every property of those from at::empty(): a key or flag that LibTorch adds would
// be missing here.
TEST(FreshMemory, MakesTensorsLikeAtEmpty) {
  for (const auto& made : {fresh_output({3, 5}, torch::kHalf), lazy_zeros(5, 3, torch::kHalf),
                           lazy_zeros(4100, 2500, torch::kFloat)}) {
    const auto theirs = torch::empty(made.sizes(), made.options());
    EXPECT_EQ(made.key_set(), theirs.key_set());
    EXPECT_EQ(made.options().dtype(), theirs.options().dtype());
    EXPECT_EQ(made.strides(), theirs.strides());
    EXPECT_EQ(made.is_non_overlapping_and_dense(), theirs.is_non_overlapping_and_dense());
    EXPECT_EQ(made.storage().resizable(), theirs.storage().resizable());
    EXPECT_EQ(made.storage().allocator(), theirs.storage().allocator());
    EXPECT_EQ(made.unsafeGetTensorImpl()->autograd_meta(), nullptr);
  }
}

}  // namespace
}  // namespace posenc::torch_internals
