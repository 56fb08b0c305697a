// What the vectorised dropout needs of ATen's generator: its engine's words and counters.
#include "core/torch_internals/cpu_generator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/compare.h"

namespace posenc::torch_internals {
namespace {

TEST(CpuGenerator, DrawsTheNumbersOfTheGenerator) {
  const auto one = seeded_cpu_generator(5), same = seeded_cpu_generator(5);
  const auto words = at::empty({2}, at::kInt).random_(0, 1 << 16, one);
  CpuGenerator raw(same);
  EXPECT_EQ(words[0].item<int>(), static_cast<int>(raw.random() % (1 << 16)));
  EXPECT_EQ(words[1].item<int>(), static_cast<int>(raw.random() % (1 << 16)));
}

TEST(CpuGenerator, TheEngineCountsTheWordsThatWereUsed) {
  const auto generator = seeded_cpu_generator(6);
  CpuGenerator raw(generator);
  raw.random();  // makes the first block
  const EngineState before = raw.engine();
  raw.random();
  const EngineState after = raw.engine();
  EXPECT_EQ(after.next, before.next + 1);
  EXPECT_EQ(after.left, before.left - 1);
  EXPECT_EQ(after.words, before.words);
  EXPECT_FALSE(after == before);
}

TEST(CpuGenerator, AnEngineThatWasSetRepeatsItsNumbers) {
  const auto generator = seeded_cpu_generator(7);
  EngineState state;
  {
    CpuGenerator raw(generator);
    raw.random();
    state = raw.engine();
  }
  const auto first = at::rand({700}, generator);
  {
    CpuGenerator raw(generator);
    raw.set_engine(state);
    EXPECT_TRUE(raw.engine() == state);
  }
  EXPECT_EQ(generator.current_seed(), 7u);
  EXPECT_TRUE(testing::bit_equal(at::rand({700}, generator), first));
}

TEST(CpuGenerator, IsLockedWhileItIsHeld) {
  at::Generator generator = default_cpu_generator();
  {
    const CpuGenerator raw(generator);
    EXPECT_FALSE(std::unique_lock<std::mutex>(generator.mutex(), std::try_to_lock));
  }
  EXPECT_TRUE(std::unique_lock<std::mutex>(generator.mutex(), std::try_to_lock));
}

}  // namespace
}  // namespace posenc::torch_internals
